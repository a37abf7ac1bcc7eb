/* metrics.c - counters in Prometheus's text format; labels are names of routes, never content of
 * requests. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "model/core/text.h"
#include "serve/server.h"
#include "process/child.h"

const double dl_time_bounds_s[DL_TIME_BUCKETS] = {0.0005, 0.001, 0.002, 0.005, 0.01, 0.02,
                                                  0.05,   0.1,   0.5,   2,     10,   60};

static const char *route_name(int i) { return i < dl_route_count() ? dl_routes[i].path : "other"; }

static void add_times(struct dl_text *text, const char *name, const struct dl_route_counts *c) {
    uint64_t sum = 0;
    for (int b = 0; b < DL_TIME_BUCKETS; b++) {
        sum += c->times[b];
        dl_text_printf(text, "dlmodel_request_seconds_bucket{route=\"%s\",le=\"%g\"} %llu\n", name,
                       dl_time_bounds_s[b], (unsigned long long)sum);
    }
    sum += c->times[DL_TIME_BUCKETS];
    dl_text_printf(text,
                   "dlmodel_request_seconds_bucket{route=\"%s\",le=\"+Inf\"} %llu\n"
                   "dlmodel_request_seconds_sum{route=\"%s\"} %.6f\n"
                   "dlmodel_request_seconds_count{route=\"%s\"} %llu\n",
                   name, (unsigned long long)sum, name, c->time_s, name, (unsigned long long)sum);
}

static void add_value(struct dl_text *text, const char *name, const char *kind, const char *help,
                      double value) {
    dl_text_printf(text, "# HELP %s %s\n# TYPE %s %s\n%s %.10g\n", name, help, name, kind, name,
                   value);
}

char *dl_metrics_text(const struct dl_server *server, size_t *bytes) {
    struct dl_arena arena = {0};
    struct dl_text text = {.arena = &arena};
    const struct dl_pool_counts pool = dl_pool_counts(server->pool);
    dl_text_add(&text, "# HELP dlmodel_requests_total requests answered\n"
                       "# TYPE dlmodel_requests_total counter\n");
    for (int i = 0; i <= dl_route_count(); i++) {
        for (int s = 1; s < DL_STATUS_CLASSES; s++) {
            if (server->routes[i].requests[s] == 0) continue;
            dl_text_printf(&text, "dlmodel_requests_total{route=\"%s\",code=\"%dxx\"} %llu\n",
                           route_name(i), s, (unsigned long long)server->routes[i].requests[s]);
        }
    }
    dl_text_add(&text, "# HELP dlmodel_request_seconds from the last byte of a request to its "
                       "answer\n# TYPE dlmodel_request_seconds histogram\n");
    for (int i = 0; i <= dl_route_count(); i++) {
        if (server->routes[i].time_s > 0) add_times(&text, route_name(i), &server->routes[i]);
    }
    add_value(&text, "dlmodel_connections", "gauge", "open connections", server->connection_count);
    add_value(&text, "dlmodel_body_bytes", "gauge", "bytes of requests in memory",
              (double)server->body_bytes);
    add_value(&text, "dlmodel_workers_idle", "gauge", "workers that wait", pool.idle);
    add_value(&text, "dlmodel_workers_busy", "gauge", "workers that compute", pool.busy);
    add_value(&text, "dlmodel_queued", "gauge", "requests that wait for a worker", pool.queued);
    add_value(&text, "dlmodel_workers_restarted_total", "counter", "workers that died",
              pool.restarted);
    add_value(&text, "dlmodel_timeouts_total", "counter", "requests that took too long",
              pool.timed_out);
    add_value(&text, "dlmodel_cancelled_total", "counter", "requests whose client left",
              pool.cancelled);
    add_value(&text, "dlmodel_uptime_seconds", "gauge", "since the start",
              dl_clock_s() - server->started_s);
    char *copy = strdup(dl_text_string(&text));
    *bytes = copy == NULL ? 0 : text.length;
    dl_arena_free(&arena);
    return copy;
}
