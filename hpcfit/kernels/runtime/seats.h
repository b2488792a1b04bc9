/* Segments of one chain in lanes: those of a crew have as many nodes and end in the same way. */

typedef struct {
    long count;
    const long *first, *nodes;         /* (count) where each segment begins, and how many nodes it has */
    const unsigned char *joined;       /* (count) a link leads on from its last node */
    const long *order;                 /* (count) segments that are alike stand together */
} seats;

static long longest(const seats *g)
{
    long most = 0;
    for (long i = 0; i < g->count; i++) most = g->nodes[i] > most ? g->nodes[i] : most;
    return most;
}

/* How many of the segments from `at` on make a crew. */
static long alike(const seats *g, long at)
{
    const long first = g->order[at];
    long taken = 1;
    while (taken < W && at + taken < g->count) {
        const long other = g->order[at + taken];
        if (g->nodes[other] != g->nodes[first] || g->joined[other] != g->joined[first]) break;
        taken++;
    }
    return taken;
}

/* The crew that begins with segment `at` of the order; slot[l]: the segment of each lane, or -1: it repeats the first. */
static long seat_segments(const chain *c, const seats *g, long at, crew *w, long *slot)
{
    const long taken = alike(g, at), model = g->order[at];
    w->nodes = g->nodes[model];
    w->linked = w->nodes - 1 + g->joined[model];
    w->shared = c->row_strides[1] == 0 && c->row_strides[3] == 0;
    EACH(l) {
        slot[l] = l < taken ? g->order[at + l] : -1;
        w->member[l] = 0;
        w->node[l] = w->link[l] = g->first[slot[l] < 0 ? model : slot[l]];
    }
    times(w->node, c->row_strides[1], w->by_node);
    times(w->node, c->row_strides[3], w->by_parameters);
    return taken;
}
