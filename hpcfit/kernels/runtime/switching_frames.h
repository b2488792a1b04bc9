/* What surfaces need to know of trajectories with frames, and what they do to them. */

#if SURFACES

INLINE int differentiates(const work *job) { (void)job; return 1; }
INLINE void take_full_order(crew *c, int l) { (void)c; (void)l; }   /* they always do */
INLINE real time_in_view(const crew *c, int l) { return FABS(LANE(c->t, l)) + LANE(c->length, l); }
static void note_meeting(const work *job, crew *c, int l, int what) { (void)job; (void)c; (void)l; (void)what; }

/* A path that slides forgets one direction: no frame of all directions can follow it. */
INLINE int all_directions(const crew *c) { return c->tangents >= N; }

#endif

#if TIMED
INLINE real time_left(const crew *c, int l, real due)
{
    return ((due - LANE(c->t0, l)) - LANE(c->t0_low, l)) - LANE(c->at, l);
}

/* A lane that goes on within a block has done the jump at which it stopped. */
INLINE int is_over(const crew *c, int l, real due)
{
    const real left = time_left(c, l, due);
    return LANE(c->at, l) > 0 ? left <= 4 * EPSILON * time_in_view(c, l) : left < 0;
}

INLINE void set_time(crew *c, int l, real time) { (void)c; (void)l; (void)time; }   /* the clock runs with the block */
#endif

#if JUMPS
/* The state lands somewhere else, with no rounding to carry on. */
INLINE void before_jump(const work *job, crew *c, int l)
{
    (void)job;
    for (int i = 0; i < N; i++) LANE(c->x_low[i], l) = 0;
}

/* log |det A| of one lane's change of directions, by elimination. */
static real logarithm_of_volume(const real *A)
{
    real a[N * N], sum = 0;
    memcpy(a, A, sizeof a);
    for (int k = 0; k < N; k++) {
        int best = k;
        for (int i = k + 1; i < N; i++) if (FABS(a[i * N + k]) > FABS(a[best * N + k])) best = i;
        if (a[best * N + k] == 0) return -INFINITY;
        for (int j = 0; j < N; j++) { real swap = a[k * N + j]; a[k * N + j] = a[best * N + j]; a[best * N + j] = swap; }
        sum += LOG(FABS(a[k * N + k]));
        for (int i = k + 1; i < N; i++) {
            const real factor = a[i * N + k] / a[k * N + k];
            for (int j = k; j < N; j++) a[i * N + j] -= factor * a[k * N + j];
        }
    }
    return sum;
}

/* The frame of one lane becomes A V, and the volume grows with it. */
static void transform(const work *job, crew *c, int l, const real *A, const real *B)
{
    (void)job; (void)B;
    LANE(c->spread, l) += logarithm_of_volume(A);
    for (int place = 0; place < c->places; place++)
        for (int m = 0; m < WIDE; m++) {
            w *V = c->S + c->where[place].first;
            const int stride = c->where[place].stride;
            real value[N];
            for (int i = 0; i < N; i++) {
                value[i] = 0;
                for (int j = 0; j < N; j++) value[i] += A[i * N + j] * LANE(part(V + j * stride, m), l);
            }
            for (int i = 0; i < N; i++) {
                v entry = part(V + i * stride, m);
                LANE(entry, l) = value[i];
                set_part(V + i * stride, m, entry);
            }
        }
}
#endif
