/* advice.h - how many nodes: what each number of nodes costs, and which one to take.
 *
 * F-KNEE: of the numbers of nodes whose cost per sample is within 10 % of the least, the largest:
 * more nodes save time, but each sample costs noticeably more. The cost is money where the price
 * is known, else device-hours. Numbers of nodes tie like
 * the plans of a job (F-TIE).
 */
#ifndef DL_MODEL_ENGINE_ADVICE_H
#define DL_MODEL_ENGINE_ADVICE_H

#include <stdbool.h>
#include <stdint.h>

/* One number of nodes of one framework. */
struct dl_advice_point {
    int64_t nodes;
    double samples_per_s;
    double half_log;        /* dl_prediction_plan_half_log */
    double efficiency;      /* of scaling */
    double cost_per_sample; /* money or device-hours */
    double run_s, run_cost; /* of a whole run; NAN: not asked for, unknown */
    bool fits;              /* in memory */
};

struct dl_advice_limits { /* 0: none */
    double deadline_s, budget;
};

struct dl_advice { /* indices of points; -1: none */
    int knee, fastest, cheapest;
    int inefficient;  /* the fewest nodes from which on efficiency is below 0.8 */
    int in_time;      /* the cheapest whose run ends by the deadline */
    int in_budget;    /* the fastest whose run the budget pays */
    int tied_fastest; /* the fewest nodes that are tied with the fastest; -1: none */
};

extern const double dl_knee_frac, dl_efficient_frac;

/* Of `count` points in ascending order of nodes; those that do not fit are passed over. */
struct dl_advice dl_advice_of(const struct dl_advice_point *points, int count,
                              const struct dl_advice_limits *limits);

#endif
