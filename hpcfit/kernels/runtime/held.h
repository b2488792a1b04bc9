/* Nodes held where they are: the dp that minimises B dp + r and w (H dp + d), with the columns scaled by their
   size, and the present misfit. precision (n): w. */
#define BORDER (q + 1)
#define LINKS_TOGETHER (n < 16 ? 16 / n : 1)

void hold(const chain *c, const double *precision, double *misfit, double *step)
{
    const long N = c->nodes;
    for (long first = 0; first < c->members; first += W) {
        long member[W], slot[W], r[W], d[W], h[W], b[W], p[W];
        EACH(l) { slot[l] = first + l < c->members ? first + l : -1; member[l] = slot[l] < 0 ? first : slot[l]; }
        times(member, N * k, r);
        times(member, (N - 1) * n, d);
        times(member, (N - 1) * n * q, h);
        times(member, c->row_strides[2], b);
        v total = all(0), width[q + 1], rest[k], gap[n], H[n * q + 1], B[k * q + 1];
        v R[BORDER * BORDER], rows[k * BORDER], links[LINKS_TOGETHER * n * BORDER], inverse[q * q + 1], dp[q + 1];
        for (int i = 0; i < q; i++) width[i] = all(0);
        for (int pass = 0; pass < 2; pass++) {     /* the sizes of the columns, then the triangle */
            int waiting = 0;
            for (int i = 0; i < BORDER * BORDER; i++) R[i] = all(0);
            for (long j = 0; j < N; j++) {
                load(c->rows + j * k, r, k, rest);
                if (pass == 0) for (int i = 0; i < k; i++) total = FMA(rest[i], rest[i], total);
                if (c->rows_by_parameters) {
                    load_shared(c->rows_by_parameters + j * c->row_strides[3], b, c->row_strides[2] == 0, k * q, B);
                    for (int i = 0; i < k; i++) {
                        rows[i * BORDER + q] = rest[i];
                        for (int s = 0; s < q; s++)
                            if (pass == 0) width[s] = FMA(B[i * q + s], B[i * q + s], width[s]);
                            else rows[i * BORDER + s] = B[i * q + s] * width[s];
                    }
                    if (pass) rotate(R, rows, q, BORDER, k);
                }
                if (j == N - 1) break;
                load(c->links + j * n, d, n, gap);
                load(c->links_by_parameters + j * n * q, h, n * q, H);
                for (int i = 0; i < n; i++) {
                    v *to = links + (waiting + i) * BORDER;
                    to[q] = gap[i] * precision[i];
                    if (pass == 0) total = FMA(to[q], to[q], total);
                    for (int s = 0; s < q; s++) {
                        to[s] = H[i * q + s] * precision[i];
                        if (pass == 0) width[s] = FMA(to[s], to[s], width[s]);
                        else to[s] *= width[s];
                    }
                }
                waiting = pass ? waiting + n : 0;
                if (waiting == LINKS_TOGETHER * n) { rotate(R, links, q, BORDER, LINKS_TOGETHER * n); waiting = 0; }
            }
            if (waiting) rotate(R, links, q, BORDER, waiting);
            if (pass == 0) for (int s = 0; s < q; s++) width[s] = pick(width[s], 1 / v_sqrt(width[s]), all(1));
        }
        const v condition = inverted(R, q, BORDER, inverse);
        substituted(R, q, BORDER, dp);
        for (int i = 0; i < q; i++) dp[i] *= width[i];
        EACH(l) if (slot[l] >= 0) { misfit[slot[l]] = total[l]; c->condition[slot[l]] = condition[l]; }
        places(slot, q, p);
        save(step, p, q, dp);
    }
}
