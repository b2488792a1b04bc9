/* What a kernel is given to do; flow/taylor.py holds its twin. Numbers are laid out as get and put say. */

typedef struct {
    long n_lanes, n_times;
    long time_rows;            /* lane l goes through row l % time_rows of the times */
    long sharing;              /* so many lanes in a row are of one member and share a row of parameters */
    long start_rows;           /* so many starts each member has; the lanes take the first ones */
    long first;                /* output: 0, or 1 where nobody wants the begin again */
    const double *times;       /* [time_rows][n_times] */
    const double *starts;      /* [n_lanes / sharing][start_rows][N] */
    const double *parameters;  /* [n_lanes / sharing][NP] */
    double *states;            /* [n_lanes][n_times - first][N] */
    double *by_start;          /* [n_lanes][n_times - first][N][N], or null: no tangents */
    double *by_parameters;     /* [n_lanes][n_times - first][N][NP] */
    double *last_time;         /* [n_lanes], or null: nobody asks where lanes ended */
    double *last_state;        /* [n_lanes][N] */
    long *steps;               /* [n_lanes] */
    int *outcome;              /* [n_lanes] */
    double tolerance, tangent_tolerance, floor;
    long max_steps;
    int order;
    long event_capacity;       /* per lane; further ones are counted, not stored */
    const int *directions;     /* per event: 1 where g rises, -1 where it falls, 0 both */
    long *event_counts;        /* [n_lanes] */
    int *event_numbers;        /* [n_lanes][event_capacity] */
    double *event_times;       /* [n_lanes][event_capacity] */
    double *event_states;      /* [n_lanes][event_capacity][N] */
    long switch_capacity;      /* per lane; further ones are counted, not stored */
    long *switch_counts;       /* [n_lanes], or null: nobody asks which surfaces lanes met */
    int *switch_numbers;       /* [n_lanes][switch_capacity] kinks, ends of slides, jumps at times */
    double *switch_times;      /* [n_lanes][switch_capacity] */
    double *switch_states;     /* [n_lanes][switch_capacity][N] before it */
    volatile int *stop;        /* set from outside to end early; null: never */
    volatile double *covered;  /* the part of the work that is done */
} work;

/* Where the start of a lane begins, its times, its parameters, and its outputs. */
INLINE long start_of(const work *job, long lane) { return (lane / job->sharing * job->start_rows + lane % job->sharing) * N; }
INLINE long times_of(const work *job, long lane) { return lane % job->time_rows * job->n_times; }
INLINE long parameters_of(const work *job, long lane) { return lane / job->sharing * NP; }
INLINE long point_of(const work *job, long lane, long output) { return lane * (job->n_times - job->first) + output - job->first; }

/* An output that a lane did not reach. */
static void write_nothing(const work *job, long lane, long output)
{
    long point = point_of(job, lane, output);
    for (int i = 0; i < N; i++) put(job->states, point * N + i, (real)NAN);
    if (!job->by_start) return;
    for (int i = 0; i < N * N; i++) put(job->by_start, point * N * N + i, (real)NAN);
    for (int i = 0; i < N * NP; i++) put(job->by_parameters, point * N * NP + i, (real)NAN);
}
