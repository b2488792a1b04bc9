/* What a kernel of spectra is given to do; flow/growth.py holds its twin. Numbers are laid out as get and put say. */

typedef struct {
    long n_lanes, tangents;    /* trajectories, and columns of each frame */
    long first_block, blocks;
    double block, interval, begin;
    int carrying;                /* only a part of each frame is here: it is carried to `reached`, and left as it is */
    double *reached;           /* [n_lanes] time since the begin of the block: before, and after */
    double *states;            /* [n_lanes][N], overwritten */
    double *frames;            /* [n_lanes][N][tangents], overwritten */
    const double *parameters;  /* [n_lanes][NP] */
    double *logarithms;        /* [n_lanes][blocks][tangents] */
    double *divergence;        /* [n_lanes][blocks] */
    double *last_time;         /* [n_lanes] */
    long *done;                /* [n_lanes] blocks that were finished */
    long *steps;               /* [n_lanes] */
    int *outcome;              /* [n_lanes] */
    double tolerance, tangent_reach, floor;
    long max_steps;
    int order;
    volatile int *stop;        /* set from outside to end early; null: never */
    volatile double *covered;  /* the part of the work that is done; null: nobody asks */
} work;

enum { RUNNING = 0, FINISHED = 1, NOT_FINITE = 2, STEP_FLOOR = 3, STEP_BUDGET = 4, STICKING = 5, TANGENTS_LOST = 6 };
