/* fair.h - max-min fair shares of links among flows (F-FAIR).
 *
 * Flows that do the same form a class. Rates of all classes rise together until a link is full or a
 * class has all it can use; the classes that this stops keep their rate, the others rise on
 * (progressive filling, Bertsekas and Gallager 1992). No flow can then get more without a slower
 * one getting less.
 */
#ifndef DL_MODEL_HARDWARE_FAIR_H
#define DL_MODEL_HARDWARE_FAIR_H

enum { DL_FAIR_LINKS = 8 };

struct dl_fair_class {
    /* in the class */
    double flows;
    /* most that one flow can use; HUGE_VAL: any */
    double demand_bytes_per_s;
    /* bytes on each link for one byte of a flow; 0: does not pass it */
    double use_frac[DL_FAIR_LINKS];
    /* filled: of one flow */
    double rate_bytes_per_s;
    /* filled: the link that stopped it; -1: its demand */
    int limit;
};

/* capacity_bytes_per_s: of `link_count` <= DL_FAIR_LINKS links; HUGE_VAL: no limit. */
void dl_fair_shares(const double *capacity_bytes_per_s, int link_count,
                    struct dl_fair_class *classes, int class_count);

#endif
