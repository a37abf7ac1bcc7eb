/* fair.h - max-min fair shares of links among flows (F-FAIR).
 *
 * Equal flows form a class. The rates of all classes rise together until a link is full or a
 * class has all that it can use; the classes that this limits keep their rate and the others
 * continue (progressive filling, Bertsekas and Gallager 1992). Then no flow can get more without a
 * slower one getting less. */
#ifndef DL_MODEL_MACHINE_FAIR_H
#define DL_MODEL_MACHINE_FAIR_H

enum { DL_FAIR_LINKS = 8 };

struct dl_fair_class {
    double flows;                   /* in the class */
    double demand_bytes_per_s;      /* most that one flow can use; HUGE_VAL: any */
    double use_frac[DL_FAIR_LINKS]; /* bytes on each link per byte of a flow; 0: not on its path */
    double rate_bytes_per_s;        /* result: of one flow */
    int limit;                      /* result: the link that stopped it; -1: its demand */
};

/* Sets rate_bytes_per_s and limit of each class. capacity_bytes_per_s: of `link_count` <=
 * DL_FAIR_LINKS links; HUGE_VAL: no limit. */
void dl_fair_shares(const double *capacity_bytes_per_s, int link_count,
                    struct dl_fair_class *classes, int class_count);

#endif
