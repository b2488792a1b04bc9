/* What follows a step: frames become orthonormal, blocks end, and lanes leave; then the loop of steps. */

#define MOST_CROWDED 64   /* crossings in a row with steps below the floor */

/* Lanes for which something is to be done after the step: one by one. */
static void attend(const work *job, crew *c, v h, v check, v arrived, const int *crossed)
{
    EACH(l) {
        if (!alive(c, l)) continue;
        const int tiny = LANE(h, l) < job->floor * job->block;
        if (LANE(check, l) != 0) {   /* not finite: the lane stays where it was */
            for (int i = 0; i < N; i++) LANE(c->x[i], l) = LANE(c->s[i * STRIDE], l);
            leave(job, c, l, NOT_FINITE);
        } else if (c->stuck[l]) leave(job, c, l, c->stuck[l]);
        else if (LANE(arrived, l)) continue;
        else if (crossed[l] >= 0) {
            cross(job, c, l, crossed[l]);
            c->crowded[l] = tiny ? c->crowded[l] + 1 : 0;   /* crossings that pile up never end (Zeno) */
            if (c->crowded[l] > MOST_CROWDED) leave(job, c, l, ZENO | (crossed[l] + 1) << 8);
        } else {
            for (int j = 0; j < KINKS; j++) c->fresh[j][l] = 0;
            if (tiny) leave(job, c, l, STEP_FLOOR);
        }
    }
}

/* Orthonormalise where it is time; end blocks; stop lanes that have taken too many steps. */
static void settle_frames(const work *job, crew *c, v due, v arrived)
{
    v bad = all(0);
    if (!job->carrying) {
        bad = orthonormalise(c, due);
        c->since = pick(due, c->at, c->since);
        for (int i = 0; i < N; i++) c->x_low[i] = pick(due, all(0), c->x_low[i]);   /* as where columns are carried apart */
    }
    if (!job->carrying && !any((bad + arrived) * c->occupied)) return;
    EACH(l) {
        if (!alive(c, l) || !LANE(due, l)) continue;
        if (LANE(bad, l)) leave(job, c, l, TANGENTS_LOST);
        else if (job->carrying) {
            put(job->divergence, c->lane[l], volume_growth(c, l));
            leave(job, c, l, FINISHED);
        } else if (LANE(arrived, l)) end_block(job, c, l);
    }
}

/* Move the clock, then what follows from it. */
static void end_step(const work *job, crew *c, v h, v next, v arrived, const int *crossed)
{
    v check = h * 0;
    for (int i = 0; i < N; i++) check += c->x[i] * 0;
    c->at = pick(1 - at_most(check, all(0)) - at_most(all(0), check), c->at, next);
    c->t = c->t0 + (c->at + c->t0_low);
    c->steps += c->occupied;
    const v tiny = at_most(h, all(job->floor * job->block)) * (1 - arrived);
    if (SURFACES || any((check + tiny) * c->occupied)) attend(job, c, h, check, arrived, crossed);
    v due = larger(arrived, at_most(all(job->interval), c->at - c->since)) * c->occupied;
    if (any(due)) settle_frames(job, c, due, arrived);
    const v spent = at_most(all(job->max_steps), c->steps) * c->occupied;
    if (any(spent)) EACH(l) if (alive(c, l) && LANE(spent, l)) leave(job, c, l, STEP_BUDGET);
}

static void step(const work *job, crew *c);

/* The part of all blocks that lies behind. */
static void tell(const work *job, const crew *c)
{
    double part = (double)c->behind;
    EACH(l) if (alive(c, l)) part += (double)(LANE(c->at, l) / LANE(c->length, l));
    *job->covered = part / ((double)job->n_lanes * job->blocks);
}

int grow(const work *job)
{
    crew *c = rows_of(sizeof(crew));
    if (!c) return 1;
    const int failed = !furnish(c, (int)job->tangents, job->n_lanes);
    EACH(l) c->lane[l] = -1;
    EACH(l) c->order.of[l] = job->order;
    for (long round = 0; !failed && enter(job, c) && !(job->stop && *job->stop); round++) {
        step(job, c);
        if (job->covered && round % 64 == 0) tell(job, c);
    }
    clear(c);
    return failed;
}
