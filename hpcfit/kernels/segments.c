/* One long chain, W of its segments at a time; linear/segments.py tells the whole story.

   Exact continuity: each segment is condensed to windows, whose rows and ends are handed out, and expanded again from
   the states of its windows. Weak continuity: the nodes inside a segment are eliminated; rows are left on its first
   node, the first node of the next segment, and the parameters. */
#include "chain.h"
#include "rotations.h"
#include "crews.h"
#include "condensing.h"
#include "seats.h"
#include "stretches.h"
#include "joints.h"

/* What condensing finds: windows in the order of the nodes, and of each segment how many, ||F1||^2 and the largest
   |F2|. */
typedef struct {
    long capacity;             /* of windows; beyond, nothing but `counts` is told */
    double *rows, *ends;       /* (windows, f, WIDTH), (windows, n, WIDTH) */
    long *begins;              /* (windows) the first node */
    long *counts;              /* (segments) */
    double *objective, *defect;
} windows;

/* The windows of all segments for any residuals; returns how many there are. */
long condense_segments(const chain *c, const seats *g, const double *rows, const double *links, windows *out)
{
    crew *w = new_crew(longest(g) + 1);
    condensed *s = new_condensed(longest(g) + 1);
    double **kept = calloc(g->count, sizeof *kept);
    long total = 0;
    const long size_of_rows = f * WIDTH, size_of_ends = n * WIDTH;
    for (long at = 0, taken; at < g->count; at += taken) {
        long slot[W], r[W], d[W];
        taken = seat_segments(c, g, at, w, slot);
        load_scales(c, w);
        load_links(c, w);
        times(w->node, k, r);
        times(w->link, n, d);
        condense(c, w, s, 0, rows, r, links, d);
        EACH(l) put_aside(s->own + l, s->R, s->T, l, w->linked == w->nodes);
        EACH(l) if (slot[l] >= 0) {
            const long own = slot[l], count = s->own[l].count;
            double *to = kept[own] = malloc(count * (size_of_rows + size_of_ends + 1) * sizeof *to);
            memcpy(to, s->own[l].rows, count * size_of_rows * sizeof *to);
            memcpy(to + count * size_of_rows, s->own[l].ends, count * size_of_ends * sizeof *to);
            double *begin = to + count * (size_of_rows + size_of_ends);
            *begin++ = g->first[own];
            for (long j = 0; j < w->nodes - 1; j++) if (w->closes[j] >> l & 1) *begin++ = g->first[own] + j + 1;
            out->counts[own] = count;
            out->objective[own] = w->objective[l];
            out->defect[own] = w->defect[l];
            total += count;
        }
    }
    for (long own = 0, at = 0; own < g->count; at += out->counts[own++]) {
        const long count = out->counts[own];
        if (total <= out->capacity) {
            memcpy(out->rows + at * size_of_rows, kept[own], count * size_of_rows * sizeof(double));
            memcpy(out->ends + at * size_of_ends, kept[own] + count * size_of_rows, count * size_of_ends * sizeof(double));
            for (long i = 0; i < count; i++) out->begins[at + i] = kept[own][count * (size_of_rows + size_of_ends) + i];
        }
        free(kept[own]);
    }
    free(kept);
    free_condensed(s);
    free_crew(w);
    return total;
}

/* ds of all nodes in units of the scales, from the states of the windows and dp: ds_j+1 = G ds_j + H dp + d. With
   `columns` right-hand sides side by side; links may be absent (no d). nodes (N, n, columns), states (windows, n,
   columns), parameters (q, columns). */
void expand_segments(const chain *c, const seats *g, const long *counts, const long *begins, const double *states,
                     const double *parameters, const double *links, long columns, double *nodes)
{
    crew *w = new_crew(longest(g) + 1);
    long *window = malloc((g->count + 1) * sizeof *window);
    window[0] = 0;
    for (long i = 0; i < g->count; i++) window[i + 1] = window[i] + counts[i];
    for (long at = 0, taken; at < g->count; at += taken) {
        long slot[W], d[W], to[W];
        taken = seat_segments(c, g, at, w, slot);
        load_scales(c, w);
        load_links(c, w);
        times(w->link, n, d);
        for (long column = 0; column < columns; column++) {
            v here[n], next[n], gap[n];
            long now[W];
            EACH(l) now[l] = window[slot[l] < 0 ? slot[0] : slot[l]];
            EACH(l) to[l] = slot[l] < 0 ? -1 : (w->node[l] * n) * columns + column;
            for (long j = 0; j < w->nodes; j++) {
                EACH(l) if (j == 0 || (now[l] + 1 < window[(slot[l] < 0 ? slot[0] : slot[l]) + 1] && begins[now[l] + 1] == w->node[l] + j)) {
                    if (j) now[l]++;
                    for (int i = 0; i < n; i++) here[i][l] = states[(now[l] * n + i) * columns + column];
                }
                EACH(l) if (to[l] >= 0) for (int i = 0; i < n; i++) nodes[to[l] + (j * n + i) * columns] = here[i][l];
                if (j == w->nodes - 1) break;
                const v *link = w->links + j * n * f;
                if (links) load(links + j * n, d, n, gap);
                for (int i = 0; i < n; i++) {
                    next[i] = links ? gap[i] * w->unit[i] : all(0);
                    for (int m = 0; m < n; m++) next[i] = FMA(link[i * f + m], here[m], next[i]);
                    for (int m = 0; m < q; m++) next[i] = FMA(link[i * f + n + m], all(parameters[m * columns + column]), next[i]);
                }
                memcpy(here, next, sizeof here);
            }
        }
    }
    free(window);
    free_crew(w);
}
