/* What surfaces need to know of the lanes of driver.h, and what they do to them. */

#if SURFACES

INLINE int differentiates(const work *job) { return job->by_start != 0; }
INLINE int all_directions(const crew *c) { (void)c; return 0; }   /* whether the tangents are as many as the states */
INLINE void take_full_order(crew *c, int l) { LANE(c->insist, l) = 1; }

/* Times around which a lane's clock rounds. */
INLINE real time_in_view(const crew *c, int l) { return FABS(LANE(c->t, l)) + FABS(LANE(c->end, l)); }

/* What a lane has met, and when: twice the number of the surface, and 1 more where the state jumps. */
static void note_meeting(const work *job, crew *c, int l, int what)
{
    if (!job->switch_counts) return;
    const long lane = c->lane[l], number = job->switch_counts[lane]++, place = lane * job->switch_capacity + number;
    if (number >= job->switch_capacity) return;
    job->switch_numbers[place] = what;
    put(job->switch_times, place, LANE(c->t, l) + LANE(c->t_low, l));
    for (int i = 0; i < N; i++) put(job->switch_states, place * N + i, LANE(c->x[i], l));
}

#endif

#if TIMED
INLINE real time_left(const crew *c, int l, real due) { return (due - LANE(c->t, l)) - LANE(c->t_low, l); }
INLINE int is_over(const crew *c, int l, real due) { return time_left(c, l, due) < 0; }

static void set_time(crew *c, int l, real time)
{
    LANE(c->t, l) = time;
    LANE(c->t_low, l) = 0;
}
#endif

#if JUMPS
/* Outputs at the very time of a jump are the state before it. */
static void before_jump(const work *job, crew *c, int l)
{
    for (; c->next[l] < job->n_times && ahead(job, c, l, c->next[l]) <= 0; c->next[l]++) write_end(job, c, l, c->next[l]);
}

/* S of one lane becomes A S, and those by parameters get B. */
static void transform(const work *job, crew *c, int l, const real *A, const real *B)
{
    (void)job;
    for (int column = 0; column < N + NP; column++) {
        real value[N];
        for (int i = 0; i < N; i++) {
            value[i] = column < N ? 0 : B[i * NP + column - N];
            for (int m = 0; m < N; m++) value[i] += A[i * N + m] * LANE(c->S[m][column], l);
        }
        for (int i = 0; i < N; i++) LANE(c->S[i][column], l) = value[i];
    }
}
#endif
