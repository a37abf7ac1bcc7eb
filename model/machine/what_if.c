/* what_if.c - see what_if.h. */
#include "model/machine/what_if.h"

#include <math.h>
#include <string.h>

#include "model/machine/power_cap.h"

static bool differ(double a, double b) {
    return dl_known(a) != dl_known(b) || (dl_known(a) && (a < b || a > b));
}

/* changed / unchanged; 1 where either is unknown or the second is 0. */
static double ratio_of(double changed, double unchanged) {
    const double ratio = changed / unchanged;
    return ratio > 0 && ratio < HUGE_VAL ? ratio : 1;
}

/* What was measured follows, unless the what-if sets it too. */
static void follow(double *value, double measured, double by) {
    if (!differ(*value, measured)) *value *= by;
}

static void *copy_of(const void *list, int count, size_t size, struct dl_arena *arena) {
    void *copy = dl_arena_alloc(arena, (size_t)count + 1, size);
    if (count > 0) memcpy(copy, list, (size_t)count * size);
    return copy;
}

/* ---- links ---- */

static bool same_pieces(const struct dl_link *a, const struct dl_link *b) {
    if (a->piece_count != b->piece_count) return false;
    for (int i = 0; i < a->piece_count; i++)
        if (differ(a->pieces[i].alpha_s, b->pieces[i].alpha_s) ||
            differ(a->pieces[i].beta_s_per_byte, b->pieces[i].beta_s_per_byte))
            return false;
    return true;
}

/* What a changed rate of one channel, inside a node, makes of all. */
static double channel_ratio(const struct dl_link *measured, const struct dl_link *link,
                            int64_t devices) {
    const double one = link->channel_bandwidth_bytes_per_s;
    double was = measured->channel_bandwidth_bytes_per_s, channels = (double)measured->channels;
    if (devices < 2 || !differ(one, was)) return 1;
    if (measured->channels < 1)
        channels = devices <= DL_LINK_DEVICES ? fmax(1, measured->ring_channels[devices]) : 1;
    if (!dl_known(was)) was = measured->bandwidth_bytes_per_s / channels;
    return ratio_of(one, was);
}

/* The attained rate of all rings, of which a what-if changed the links: that of a link stays. */
static double ring_ratio(const struct dl_link *measured, const struct dl_link *link,
                         int64_t devices) {
    const int64_t all = devices < DL_LINK_DEVICES ? devices : DL_LINK_DEVICES;
    if (all < 2 || measured->ring_channels[all] < 1 || link->ring_channels[all] < 1) return 1;
    return (double)link->ring_channels[all] / (double)measured->ring_channels[all];
}

static void link_what_if(const struct dl_link *measured, struct dl_link *link, int64_t devices,
                         struct dl_arena *arena) {
    const struct dl_piece *large =
        measured->piece_count > 0 ? &measured->pieces[measured->piece_count - 1] : NULL;
    const double was_bandwidth = dl_known(measured->bandwidth_bytes_per_s) || large == NULL
                                     ? measured->bandwidth_bytes_per_s
                                     : 1 / large->beta_s_per_byte,
                 was_latency = dl_known(measured->latency_s) || large == NULL
                                   ? measured->latency_s
                                   : measured->pieces[0].alpha_s;
    const double bandwidth = ratio_of(link->bandwidth_bytes_per_s, was_bandwidth),
                 latency = ratio_of(link->latency_s, was_latency);
    if (differ(link->bandwidth_bytes_per_s, measured->bandwidth_bytes_per_s))
        link->assumed = false; /* the user says it */
    follow(&link->nccl_bandwidth_bytes_per_s, measured->nccl_bandwidth_bytes_per_s, bandwidth);
    follow(&link->channel_bandwidth_bytes_per_s, measured->channel_bandwidth_bytes_per_s,
           bandwidth);
    follow(&link->bandwidth_bytes_per_s, measured->bandwidth_bytes_per_s,
           ring_ratio(measured, link, devices) * channel_ratio(measured, link, devices));
    if (link->piece_count == 0 || !same_pieces(measured, link)) return;
    link->pieces = copy_of(link->pieces, link->piece_count, sizeof *link->pieces, arena);
    for (int i = 0; i < link->piece_count; i++) {
        link->pieces[i].alpha_s *= latency;
        link->pieces[i].beta_s_per_byte /= bandwidth;
    }
}

/* A pageable copy passes through a pinned buffer: what it takes beyond the pinned copy stays. */
static void host_what_if(const struct dl_host *measured, struct dl_host *host) {
    const double copy = host->copy_bandwidth_bytes_per_s,
                 was_copy = measured->copy_bandwidth_bytes_per_s,
                 was = measured->pageable_bandwidth_bytes_per_s;
    if (!(copy > 0) || !(was_copy > 0) || !(was > 0) || !differ(copy, was_copy) ||
        differ(was, host->pageable_bandwidth_bytes_per_s))
        return;
    host->pageable_bandwidth_bytes_per_s = 1 / (1 / copy + fmax(0, 1 / was - 1 / was_copy));
}

void dl_system_what_if(const struct dl_system *measured, struct dl_system *system,
                       struct dl_arena *arena) {
    const int64_t devices = system->devices_per_node;
    if (measured->has_intra && system->has_intra && devices == measured->devices_per_node)
        link_what_if(&measured->intra, &system->intra, devices, arena);
    if (measured->has_inter && system->has_inter)
        link_what_if(&measured->inter, &system->inter, 0, arena);
    if (measured->has_host && system->has_host) host_what_if(&measured->host, &system->host);
}

/* ---- devices ---- */

/* Units at a clock make the peaks: flop of a unit in a cycle stay. */
static void follow_clock(const struct dl_device *measured, struct dl_device *device) {
    const double units = measured->unit_count > 0 && device->unit_count > 0
                             ? ratio_of((double)device->unit_count, (double)measured->unit_count)
                             : 1;
    const double faster = units * ratio_of(device->clock_hz, measured->clock_hz);
    for (int i = 0; i < device->rate_count; i++) {
        struct dl_rate *rate = &device->rates[i];
        for (int k = 0; k < measured->rate_count; k++) {
            const struct dl_rate *was = &measured->rates[k];
            if (was->precision != rate->precision || was->unit != rate->unit) continue;
            follow(&rate->peak_flop_per_s, was->peak_flop_per_s, faster);
            if (rate->sustained_flop_per_s > 0)
                follow(&rate->sustained_flop_per_s, was->sustained_flop_per_s,
                       ratio_of(rate->peak_flop_per_s, was->peak_flop_per_s));
        }
    }
}

/* F-POWER-CLOCK: the power under load goes with a lower clock, unless it was set itself. A higher
 * one than the chip has would be another chip's. */
static void follow_power(const struct dl_device *measured, struct dl_device *device) {
    const double ratio = ratio_of(device->clock_hz, measured->clock_hz),
                 idle_w = dl_device_idle_w(measured), load_w = measured->power.load_w,
                 uncapped_w = measured->power.uncapped_load_w;
    if (!(ratio < 1)) return;
    if (load_w > 0)
        follow(&device->power.load_w, load_w, dl_power_at_clock_w(idle_w, load_w, ratio) / load_w);
    if (uncapped_w > 0)
        follow(&device->power.uncapped_load_w, uncapped_w,
               dl_power_at_clock_w(idle_w, uncapped_w, ratio) / uncapped_w);
}

/* Of large GEMMs: the file's, else that of the fit. */
static double attained(const struct dl_device *device, enum dl_precision precision) {
    double rate = dl_device_sustained(device, precision);
    for (int i = 0; i < device->kernel_model_count && !(rate > 0); i++)
        if (device->kernel_models[i].op == DL_OP_GEMM &&
            device->kernel_models[i].precision == (int)precision)
            rate = device->kernel_models[i].rate_flop_per_s;
    return rate;
}

static double rate_ratio(const struct dl_device *measured, const struct dl_device *device,
                         enum dl_precision precision) {
    const double sustained = dl_device_sustained(device, precision),
                 was = attained(measured, precision);
    return sustained > 0 && was > 0
               ? ratio_of(sustained, was)
               : ratio_of(dl_device_peak(device, precision), dl_device_peak(measured, precision));
}

/* Kernels of the device with other rates were not measured: as those of another device of its
 * architecture (SAME_ARCHITECTURE_SIGMA in kernel.c). */
static const double SCALED_SIGMA = 0.12;

static void follow_model(const struct dl_device *measured, const struct dl_device *device,
                         double bandwidth, double latency, struct dl_kernel_model *model) {
    const double rate = rate_ratio(measured, device, (enum dl_precision)model->precision);
    if (differ(rate, 1) || differ(bandwidth, 1) || differ(latency, 1)) {
        model->correction.sigma_log = hypot(model->correction.sigma_log, SCALED_SIGMA);
        model->base_sigma_log = hypot(model->base_sigma_log, SCALED_SIGMA);
    }
    model->rate_flop_per_s *= rate;
    model->bandwidth_bytes_per_s *= bandwidth;
    model->algorithms.transform_bytes_per_s *= bandwidth;
    model->algorithms.gather_bytes_per_s *= bandwidth;
    model->latency_s *= latency;
}

void dl_device_what_if(const struct dl_device *measured, struct dl_device *device,
                       struct dl_arena *arena) {
    const double bandwidth = ratio_of(device->memory_bandwidth_bytes_per_s,
                                      measured->memory_bandwidth_bytes_per_s) *
                             ratio_of(device->memory_efficiency, measured->memory_efficiency),
                 latency = ratio_of(device->kernel_latency_s, measured->kernel_latency_s);
    device->rates = copy_of(device->rates, device->rate_count, sizeof *device->rates, arena);
    follow_clock(measured, device);
    follow_power(measured, device);
    if (device->kernel_model_count == 0) { /* their file goes by the name, which may be set */
        device->kernel_models = measured->kernel_models;
        device->kernel_model_count = measured->kernel_model_count;
    }
    if (device->kernel_model_count == 0) return;
    device->kernel_models = copy_of(device->kernel_models, device->kernel_model_count,
                                    sizeof *device->kernel_models, arena);
    for (int i = 0; i < device->kernel_model_count; i++)
        follow_model(measured, device, bandwidth, latency, &device->kernel_models[i]);
}

/* ---- members without effect ---- */

static bool is_part(const char *at, size_t length, const char *part) {
    return strncmp(at, part, length) == 0 &&
           (part[length] == 0 || strncmp(part + length, "_bytes_per_s", 12) == 0 ||
            strcmp(part + length, "_s") == 0);
}

/* Of a link, the members that only the links of the other kind have. */
static const char *reason_of_link(bool inter, const char *at, size_t length) {
    static const char *const of_node[] = {"channels",    "channel_bandwidth_bytes_per_s",
                                          "edges",       "cross_bandwidth_bytes_per_s",
                                          "peer_group",  "peer_to_peer",
                                          "domain_nodes"},
                             *const of_network[] = {"adapters_per_node",
                                                    "rdma",
                                                    "nccl_bandwidth_bytes_per_s",
                                                    "flow_bandwidth_bytes_per_s",
                                                    "sockets_per_ring",
                                                    "gpudirect",
                                                    "distance",
                                                    "per_message_cpu_s"};
    enum { OF_NODE = sizeof of_node / sizeof of_node[0] };
    enum { OF_NETWORK = sizeof of_network / sizeof of_network[0] };
    for (int i = 0; i < (inter ? OF_NODE : OF_NETWORK); i++)
        if (is_part(at, length, inter ? of_node[i] : of_network[i]))
            return inter ? "only links inside a node (links.intra) have it"
                         : "only links between nodes (links.inter) have it";
    return NULL;
}

static const char *reason_of_part(const char *at, size_t length, bool first) {
    static const char WORDS[] = "it describes; no formula reads it",
                      CALIBRATED[] = "it records how a profile was measured; predictions use what "
                                     "was fitted to it",
                      OPEN[] = "workers of the loader open files ahead; its time is not modelled";
    static const struct {
        const char *part, *reason;
    } parts[] = {{"name", WORDS},
                 {"summary", WORDS},
                 {"aliases", WORDS},
                 {"extends", "a file names its base; predictions read both together"},
                 {"source", WORDS},
                 {"sources", WORDS},
                 {"comment", WORDS},
                 {"vendor", WORDS},
                 {"price_currency", WORDS},
                 {"price_date", WORDS},
                 {"assumed", "it makes predictions say that nobody measured the link"},
                 {"measured_on", CALIBRATED},
                 {"measured_at", CALIBRATED},
                 {"measurement", CALIBRATED},
                 {"samples", CALIBRATED},
                 {"open_s", OPEN}};
    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++)
        if ((first || parts[i].reason != CALIBRATED) && is_part(at, length, parts[i].part))
            return parts[i].reason;
    return NULL;
}

const char *dl_what_if_reason(const char *key) {
    static const char INTRA[] = "links.intra.", INTER[] = "links.inter.", STORE[] = "storage.kind";
    const char *at = key, *reason = NULL;
    if (strcmp(key, STORE) == 0) return "its rates say what it does";
    if (strncmp(key, INTRA, sizeof INTRA - 1) == 0 || strncmp(key, INTER, sizeof INTER - 1) == 0) {
        const char *member = key + sizeof INTRA - 1;
        reason = reason_of_link(strncmp(key, INTER, sizeof INTER - 1) == 0, member,
                                strcspn(member, "."));
    }
    for (bool first = true; *at != 0 && reason == NULL; first = false) {
        const size_t length = strcspn(at, ".");
        reason = reason_of_part(at, length, first);
        at += length;
        at += strspn(at, ".0123456789");
    }
    return reason;
}
