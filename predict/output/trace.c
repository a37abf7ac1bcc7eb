/* trace.c - Chrome's trace event format: complete events ("ph":"X") with microseconds; a device (of
 * a pipeline one of each stage) is a process, a lane a thread. */
#include "predict/output/trace.h"

#include <string.h>

#include "model/core/file.h"
#include "model/core/json.h"

static const char *const lanes[] = {"compute",
                                    "communication",
                                    "copy",
                                    "host",
                                    "breakdown",
                                    "send forward",
                                    "receive forward",
                                    "send backward",
                                    "receive backward",
                                    NULL};
enum { BREAKDOWN = 4, OF_STAGES };

static int lane_of(const char *name) {
    for (int i = 0; lanes[i] != NULL; i++) {
        if (strcmp(lanes[i], name) == 0) return i;
    }
    return 0;
}

static void name_lane(struct dl_json_writer *w, const char *what, int stage, int lane,
                      const char *text) {
    dl_jw_object(w, NULL);
    dl_jw_string(w, "name", what);
    dl_jw_string(w, "ph", "M");
    dl_jw_integer(w, "pid", stage + 1);
    dl_jw_integer(w, "tid", lane);
    dl_jw_object(w, "args");
    dl_jw_string(w, "name", text);
    dl_jw_end(w);
    dl_jw_end(w);
}

/* A term without a formula has no arguments. */
static void event(struct dl_json_writer *w, int lane, const struct dl_term *term) {
    dl_jw_object(w, NULL);
    dl_jw_string(w, "name", term->name);
    dl_jw_string(w, "cat", term->group);
    dl_jw_string(w, "ph", "X");
    dl_jw_number(w, "ts", 1e6 * term->start_s);
    dl_jw_number(w, "dur", 1e6 * term->value);
    dl_jw_integer(w, "pid", 1 + term->stage);
    dl_jw_integer(w, "tid", lane);
    if (term->formula != NULL) {
        dl_jw_object(w, "args");
        dl_jw_string(w, "formula", term->formula);
        dl_jw_string(w, "inputs", term->inputs);
        dl_jw_string(w, "origin", term->origin);
        if (term->critical) dl_jw_bool(w, "critical", true);
        dl_jw_end(w);
    }
    dl_jw_end(w);
}

static void breakdown(struct dl_json_writer *w, const struct dl_prediction *p) {
    const struct {
        const char *name;
        double seconds;
    } parts[] = {
        {"compute", p->compute_s},
        {"exposed communication", p->exposed_comm_s},
        {"exposed input", p->exposed_input_s},
        {"pipeline bubble", p->bubble_s},
        {"overhead", p->overhead_s},
    };
    double start_s = 0;
    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++) {
        if (!(parts[i].seconds > 0)) continue;
        event(w, BREAKDOWN,
              &(struct dl_term){.name = parts[i].name,
                                .group = "breakdown",
                                .start_s = start_s,
                                .value = parts[i].seconds});
        start_s += parts[i].seconds;
    }
}

/* Memory of a device of each stage, a counter. */
static void memory(struct dl_json_writer *w, const struct dl_course *course) {
    for (int s = 0; s < course->memory_count; s++)
        for (int i = 0; i < course->memory[s].count; i++) {
            dl_jw_object(w, NULL);
            dl_jw_string(w, "name", "memory");
            dl_jw_string(w, "ph", "C");
            dl_jw_number(w, "ts", 1e6 * course->memory[s].points[i].s);
            dl_jw_integer(w, "pid", s + 1);
            dl_jw_object(w, "args");
            dl_jw_number(w, "bytes", course->memory[s].points[i].bytes);
            dl_jw_end(w);
            dl_jw_end(w);
        }
}

enum dl_code dl_trace_write(const char *path, const struct dl_prediction_row *row,
                            struct dl_arena *arena, struct dl_err *err) {
    const struct dl_prediction *p = row->prediction;
    struct dl_json_writer w;
    dl_jw_init(&w, arena, true);
    dl_jw_object(&w, NULL);
    dl_jw_string(&w, "displayTimeUnit", "ms");
    dl_jw_object(&w, "otherData");
    dl_jw_string(&w, "system", row->system->name);
    dl_jw_string(&w, "workload", row->workload->name);
    dl_jw_string(&w, "framework", row->framework->name);
    dl_jw_number(&w, "iteration_s", p->iteration_s);
    dl_jw_end(&w);
    dl_jw_array(&w, "traceEvents");
    const int stages = p->course.memory_count > 1 ? p->course.memory_count : 1;
    for (int s = 0; s < stages; s++) {
        const char *stage = stages > 1 ? dl_arena_printf(arena, "stage %d of ", s + 1) : "";
        name_lane(&w, "process_name", s, 0,
                  dl_arena_printf(arena, "%s%s on %s: one iteration, predicted", stage,
                                  row->workload->name, row->system->name));
        for (int i = 0; lanes[i] != NULL; i++)
            if (i != BREAKDOWN ? i < OF_STAGES || stages > 1 : s == 0)
                name_lane(&w, "thread_name", s, i, lanes[i]);
    }
    for (int i = 0; i < p->course.task_count; i++) {
        const struct dl_term *t = &p->course.tasks[i];
        if (!dl_known(t->start_s) || t->lane == NULL) continue;
        event(&w, lane_of(t->lane), t);
    }
    breakdown(&w, p);
    memory(&w, &p->course);
    const char *text = dl_jw_text(&w);
    return dl_file_write(path, text, strlen(text), err);
}
