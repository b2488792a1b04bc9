/* Events: places where a function g(t, x, p) of the path changes its sign, for sections. The step goes on. */

#if EVENTS

/* q(t) becomes q(t + by). */
static void shift(real *q, int m, real by)
{
    for (int i = 0; i < m; i++) for (int k = m - 1; k >= i; k--) q[k] += by * q[k + 1];
}

static void store_event(const work *job, const crew *c, int l, int j, real at)
{
    long lane = c->lane[l], number = job->event_counts[lane]++;
    if (number >= job->event_capacity) return;
    long place = lane * job->event_capacity + number;
    job->event_numbers[place] = j;
    put(job->event_times, place, LANE(c->t, l) + (LANE(c->t_low, l) + at));
    for (int i = 0; i < N; i++) {
        real x[ORDER + 2];
        for (int k = 0; k <= c->order.of[l]; k++) x[k] = LANE(c->s[i * STRIDE + k], l);
        put(job->event_states, place * N + i, value_at(x, c->order.of[l], at));
    }
}

/* All events of kind j of one lane inside the step. */
static void find_in_lane(const work *job, crew *c, int l, int j, real h)
{
    const v *g = c->s + event_series[j] * STRIDE;
    real q[ORDER + 2], passed = 0, root;
    int m = c->order.of[l] - 1;
    for (int k = 0; k <= m; k++) q[k] = LANE(g[k], l);
    if (c->side[j][l] == 0) {   /* the lane has just entered; on g = 0 it is met, but not counted */
        real first = q[0] != 0 ? q[0] : q[1];
        c->side[j][l] = first < 0 ? -1 : 1;
        c->met[j][l] = q[0] == 0;
    }
    for (int guard = 0; guard < 4 * ORDER; guard++) {
        int met = c->met[j][l];
        real side = c->side[j][l], p[ORDER + 2];
        for (int k = met; k <= m; k++) p[k - met] = side * q[k];
        if (!met && p[0] < 0) root = 0;   /* crossed within the last bit of the step before */
        else if (!first_root(p, m - met, h - passed, &root)) break;
        passed += root;
        shift(q, m, root);
        c->side[j][l] = -side;
        c->met[j][l] = 1;
        if (job->directions[j] == 0 || job->directions[j] == (side < 0 ? 1 : -1)) store_event(job, c, l, j, passed);
        if (passed >= h) return;
    }
    c->met[j][l] = 0;
}

static void find_events(const work *job, crew *c, v h)
{
    if (!job->event_counts) return;
    for (int j = 0; j < EVENTS; j++) {
        const v *g = c->s + event_series[j] * STRIDE;
        v reach = all(0);
        for (int k = c->order.highest - 1; k >= 1; k--) reach = (reach + size(g[k])) * h;
        EACH(l) {
            real g0 = FABS(LANE(g[0], l)), sum = g0 + LANE(reach, l);
            int far = LANE(reach, l) < g0 && c->side[j][l] * LANE(g[0], l) > 0;
            if (!alive(c, l) || !(sum * 0 == 0)) continue;
            if (far) c->met[j][l] = 0;
            else find_in_lane(job, c, l, j, LANE(h, l));
        }
    }
}

#else

INLINE void find_events(const work *job, crew *c, v h) { (void)job; (void)c; (void)h; }

#endif
