/* Jumps of the state: x+ = h(t, x-, p) at a root of g or at a given time. With dt* = -(g_x S + g_p) / (dg/dt),
   S+ = h_x S- + h_p + (h_x f- + h_t - f+) dt*: the state lands earlier or later, and on another slope. */

#if JUMPS

typedef struct { real by_state[N * N], by_parameter[N * NP + 1], by_time[N]; } landed;

static void side_on_surface(crew *c, int l, int j);
static void set_time(crew *c, int l, real time);
static void before_jump(const work *job, crew *c, int l);
static void transform(const work *job, crew *c, int l, const real *by_state, const real *by_parameter);

INLINE landed nothing_yet(void)
{
    landed r;
    for (int i = 0; i < N * N; i++) r.by_state[i] = i % (N + 1) == 0;
    for (int i = 0; i < N * NP; i++) r.by_parameter[i] = 0;
    for (int i = 0; i < N; i++) r.by_time[i] = 0;
    return r;
}

/* Let one lane jump; r becomes the derivative of this jump after those before it at the same time. */
static void land(crew *c, int l, int number, landed *r)
{
    v y[N], A[N * N], B[N * NP + 1], C[N];
    landed all_of_it;
    landing(number, c->x, c->p, c->u, c->mode, c->t, y);
    landing_slopes(number, c->x, c->p, c->u, c->mode, c->t, A, B, C);
    for (int i = 0; i < N; i++) {
        for (int j = 0; j < N; j++) {
            real sum = 0;
            for (int m = 0; m < N; m++) sum += LANE(A[i * N + m], l) * r->by_state[m * N + j];
            all_of_it.by_state[i * N + j] = sum;
        }
        for (int j = 0; j < NP; j++) {
            real sum = LANE(B[i * NP + j], l);
            for (int m = 0; m < N; m++) sum += LANE(A[i * N + m], l) * r->by_parameter[m * NP + j];
            all_of_it.by_parameter[i * NP + j] = sum;
        }
        real sum = LANE(C[i], l);
        for (int m = 0; m < N; m++) sum += LANE(A[i * N + m], l) * r->by_time[m];
        all_of_it.by_time[i] = sum;
    }
    *r = all_of_it;
    for (int i = 0; i < N; i++) LANE(c->x[i], l) = LANE(y[i], l);
}

/* Tangents of one lane, whose state has landed, for a surface with this gradient. */
static void saltate(const work *job, crew *c, int l, landed *r, const v *gradient, real fall, const v *before)
{
    v after[N];
    slopes(c->x, c->p, c->u, c->mode, c->t, after);
    if (!differentiates(job)) return;
    for (int i = 0; i < N; i++) {
        real turn = r->by_time[i] - LANE(after[i], l);
        for (int m = 0; m < N; m++) turn += r->by_state[i * N + m] * LANE(before[m], l);
        r->by_time[i] = turn / fall;
    }
    for (int i = 0; i < N; i++) {
        for (int j = 0; j < N; j++) r->by_state[i * N + j] -= r->by_time[i] * LANE(gradient[j], l);
        for (int j = 0; j < NP; j++) r->by_parameter[i * NP + j] -= r->by_time[i] * LANE(gradient[N + j], l);
    }
    transform(job, c, l, r->by_state, r->by_parameter);
}

/* Sides after a jump: of kinks that the jump has moved, and of the one at whose root it happened (-1: none). */
static void sides_after_jump(crew *c, int l, int root, const v *g)
{
#if KINKS
    v now[KINKS];
    kink_values(c->x, c->p, c->u, c->mode, c->t, now);
    const real rounding = SQRT(EPSILON) * SQRT(SQRT(EPSILON)) * c->meets.scale[l];
    for (int j = 0; j < KINKS; j++) {
        real value = LANE(now[j], l);
        const int same = value == LANE(g[j], l);
        if (j != root && same) continue;
#if SLIDES
        if (kink_slide[j] >= 0) LANE(c->mode[KINKS + kink_slide[j]], l) = -1;
#endif
        c->fresh[j][l] = 0;
        if (value == 0 || (j == root && (same || FABS(value) <= rounding))) side_on_surface(c, l, j);
        else LANE(c->mode[j], l) = value > 0 ? 1 : -1;
    }
    settle_slides(c, l, -1, 0);
#else
    (void)c; (void)l; (void)root; (void)g;
#endif
}

#if ROOTS

/* Whether a jump belongs to kink j in the direction in which the lane meets it. */
static int lands(const crew *c, int l, int j)
{
    int direction = LANE(c->mode[j], l) > 0 ? -1 : 1;
    for (int r = 0; r < ROOTS; r++)
        if (root_jumps[r].kink == j && root_jumps[r].direction != -direction) return 1;
    return 0;
}

static void at_root(const work *job, crew *c, int l, int j, const v *gradient, real fall, const v *before)
{
    v g[KINKS];
    landed r = nothing_yet();
    int direction = LANE(c->mode[j], l) > 0 ? -1 : 1;
    if (grazes(job, c, l, fall)) { STOP_AT(c, l, GRAZING, j); return; }
    before_jump(job, c, l);
    kink_values(c->x, c->p, c->u, c->mode, c->t, g);
    for (int i = 0; i < ROOTS; i++)
        if (root_jumps[i].kink == j && root_jumps[i].direction != -direction) land(c, l, root_jumps[i].jump, &r);
    sides_after_jump(c, l, j, g);
    saltate(job, c, l, &r, gradient, fall, before);
}

/* A lane that begins at the root of a jump, to rounding: it jumps at once if it moves that way, and never if it moves
   the other way. So intervals that meet at the root of a jump add up to the whole. */
static int begins_on_root(crew *c, int l, int j, real g)
{
    int belongs = 0;
    for (int r = 0; r < ROOTS; r++) belongs |= root_jumps[r].kink == j;
    if (!belongs) return 0;
    const real speed = drift(c, l, j, 1), rounding = 4 * EPSILON * FABS(speed) * time_in_view(c, l);
    if (speed == 0 || FABS(g) > rounding) return 0;
    LANE(c->mode[j], l) = speed < 0 ? 1 : -1;
    if (lands(c, l, j)) return 1;
    LANE(c->mode[j], l) = -LANE(c->mode[j], l);
    c->fresh[j][l] = 1;
    return 1;
}

#elif KINKS

INLINE int lands(const crew *c, int l, int j) { (void)c; (void)l; (void)j; return 0; }
INLINE void at_root(const work *job, crew *c, int l, int j, const v *gradient, real fall, const v *before)
{
    (void)job; (void)c; (void)l; (void)j; (void)gradient; (void)fall; (void)before;
}
INLINE int begins_on_root(crew *c, int l, int j, real g) { (void)c; (void)l; (void)j; (void)g; return 0; }

#else

INLINE int begins_on_root(crew *c, int l, int j, real g) { (void)c; (void)l; (void)j; (void)g; return 0; }

#endif

#elif KINKS

INLINE int lands(const crew *c, int l, int j) { (void)c; (void)l; (void)j; return 0; }
INLINE void at_root(const work *job, crew *c, int l, int j, const v *gradient, real fall, const v *before)
{
    (void)job; (void)c; (void)l; (void)j; (void)gradient; (void)fall; (void)before;
}
INLINE int begins_on_root(crew *c, int l, int j, real g) { (void)c; (void)l; (void)j; (void)g; return 0; }

#endif

#if TIMED

/* The time of the next jump of a rhythm; infinite where there is none. */
static void next_due(crew *c, int l, int q)
{
    v first[TIMED], every[TIMED];
    const long k = c->meets.count[q][l];
    rhythms(c->x, c->p, c->u, c->mode, c->t, first, every);
    const int more = timed_jumps[q].count < 0 || k < timed_jumps[q].count;
    c->meets.due[q][l] = more ? LANE(first[q], l) + k * LANE(every[q], l) : (real)INFINITY;
}

/* The first jump of each rhythm that is not over: a jump at the very begin is still to come. */
static void begin_rhythms(crew *c, int l)
{
    for (int q = 0; q < TIMED; q++) {
        v first[TIMED], every[TIMED];
        rhythms(c->x, c->p, c->u, c->mode, c->t, first, every);
        const real distance = LANE(every[q], l);
        c->meets.count[q][l] = 0;
        if (timed_jumps[q].repeated && !(distance > 0)) { STOP_AT(c, l, RHYTHM, KINKS + 2 * SLIDES + q); continue; }
        const real passed = timed_jumps[q].repeated ? (LANE(c->t, l) - LANE(first[q], l)) / distance : 0;
        if (passed > 2 && passed < (real)1e15) c->meets.count[q][l] = (long)passed - 1;
        for (next_due(c, l, q); is_over(c, l, c->meets.due[q][l]); next_due(c, l, q)) c->meets.count[q][l]++;
    }
}

/* The step up to the first jump at a time in each lane; of several at the same time, the first that was declared. */
static v first_time(crew *c, v h, int *crossed)
{
    for (int q = 0; q < TIMED; q++) EACH(l) {
        if (!alive(c, l) || c->stuck[l]) continue;
        const real left = time_left(c, l, c->meets.due[q][l]);
        const int surface = KINKS + 2 * SLIDES + q;
        if (!(left < LANE(h, l) || (left == LANE(h, l) && crossed[l] < KINKS + 2 * SLIDES))) continue;
        LANE(h, l) = left > 0 ? left : 0;
        crossed[l] = surface;
    }
    return h;
}

static void at_time(const work *job, crew *c, int l, int q)
{
    v before[N], gradient[N + NP + 1], first[TIMED * (N + NP)], every[TIMED * (N + NP)], g[KINKS + 1];
    const real k = c->meets.count[q][l];
    landed r = nothing_yet();
    set_time(c, l, c->meets.due[q][l]);
    note_meeting(job, c, l, 2 * (KINKS + 2 * SLIDES + q) + 1);
    before_jump(job, c, l);
    rhythm_slopes(c->x, c->p, c->u, c->mode, c->t, first, every);
    for (int i = 0; i < N + NP; i++) gradient[i] = -(first[q * (N + NP) + i] + k * every[q * (N + NP) + i]);
    gradient[N + NP] = all(1);
    slopes(c->x, c->p, c->u, c->mode, c->t, before);
#if KINKS
    kink_values(c->x, c->p, c->u, c->mode, c->t, g);
#endif
    land(c, l, timed_jumps[q].jump, &r);
    sides_after_jump(c, l, -1, g);
    saltate(job, c, l, &r, gradient, 1, before);
    c->meets.count[q][l]++;
    next_due(c, l, q);
}

#elif SURFACES

INLINE void begin_rhythms(crew *c, int l) { (void)c; (void)l; }
INLINE v first_time(crew *c, v h, int *crossed) { (void)c; (void)crossed; return h; }
INLINE void at_time(const work *job, crew *c, int l, int q) { (void)job; (void)c; (void)l; (void)q; }

#endif
