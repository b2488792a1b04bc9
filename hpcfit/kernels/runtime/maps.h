/* Lanes of a map: x <- f(t, x, p), S <- f_x S + f_p, W lanes at a time. */

enum { FINISHED = 1, NOT_FINITE = 2, STEP_BUDGET = 4 };

#include "work.h"

static void iterate(const work *job, long first)
{
    v x[N], y[N], p[NP + 1], t, S[N][N + NP + 1], J[N * N], G[N * NP + 1];
    long next[W], left[W];
    EACH(l) {
        long lane = first + l < job->n_lanes ? first + l : first;   /* an empty place repeats the first lane */
        for (int i = 0; i < N; i++) LANE(x[i], l) = get(job->starts, start_of(job, lane) + i);
        for (int j = 0; j < NP; j++) LANE(p[j], l) = get(job->parameters, parameters_of(job, lane) + j);
        LANE(t, l) = get(job->times, times_of(job, lane));
        next[l] = job->first;
        left[l] = first + l < job->n_lanes;
    }
    for (int i = 0; i < N; i++) for (int j = 0; j < N + NP; j++) S[i][j] = all(i == j);
    for (long steps = 0, at_work = 1; at_work; steps++) {
        at_work = 0;
        EACH(l) if (left[l]) {
            long lane = first + l;
            if (get(job->times, times_of(job, lane) + next[l]) == LANE(t, l)) {
                long point = point_of(job, lane, next[l]++);
                for (int i = 0; i < N; i++) put(job->states, point * N + i, LANE(x[i], l));
                for (int i = 0; job->by_start && i < N; i++) {
                    for (int j = 0; j < N; j++) put(job->by_start, (point * N + i) * N + j, LANE(S[i][j], l));
                    for (int j = 0; j < NP; j++) put(job->by_parameters, (point * N + i) * NP + j, LANE(S[i][N + j], l));
                }
            }
            job->steps[lane] = steps;
            if (job->last_time) {
                put(job->last_time, lane, LANE(t, l));
                for (int i = 0; i < N; i++) put(job->last_state, lane * N + i, LANE(x[i], l));
            }
            if (next[l] == job->n_times) { job->outcome[lane] = FINISHED; left[l] = 0; }
            else if (steps >= job->max_steps) {
                job->outcome[lane] = STEP_BUDGET;
                left[l] = 0;
                for (long k = next[l]; k < job->n_times; k++) write_nothing(job, lane, k);
            }
            at_work += left[l];
        }
        if (!at_work || (job->stop && *job->stop)) return;
        next_state(x, p, t, y);
        v check = all(0);
        if (job->by_start) {
            next_tangents(x, p, t, J, G);
            v T[N][N + NP + 1];
            for (int i = 0; i < N; i++) for (int j = 0; j < N + NP; j++) {
                T[i][j] = j < N ? all(0) : G[i * NP + (j < N ? 0 : j - N)];
                for (int m = 0; m < N; m++) T[i][j] = FMA(J[i * N + m], S[m][j], T[i][j]);
                check += T[i][j] * 0;
            }
            memcpy(S, T, sizeof S);
        }
        for (int i = 0; i < N; i++) check += y[i] * 0;
        EACH(l) if (left[l] && LANE(check, l) != 0) {
            job->outcome[first + l] = NOT_FINITE;
            left[l] = 0;
            for (long k = next[l]; k < job->n_times; k++) write_nothing(job, first + l, k);
        }
        for (int i = 0; i < N; i++) EACH(l) if (left[l]) LANE(x[i], l) = LANE(y[i], l);
        t += 1;
    }
}

int propagate(const work *job)
{
    for (long first = 0; first < job->n_lanes && !(job->stop && *job->stop); first += W) {
        iterate(job, first);
        if (job->covered) *job->covered = (double)first / job->n_lanes;
    }
    return 0;
}
