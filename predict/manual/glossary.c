/* glossary.c - the words of the answers. Headings of tables that are plain units are not listed. */
#include "predict/manual/glossary.h"

#include <strings.h>

#include "predict/manual/wrap.h"

static const struct term {
    const char *name, *alias, *meaning;
} terms[] = {
    {"bottleneck", "bound",
     "the resource that most of the iteration waits for, along its critical path (compute, "
     "memory-bandwidth, intra-link, inter-link, latency, host-copy, host, input, framework, "
     "pipeline-bubble, parameter-server), with its percentage of the iteration; "
     "memory-capacity: the plan does not fit. theory F-BOUND"},
    {"bubble", NULL, "time in which a pipeline stage waits for other stages"},
    {"compute", NULL, "sum of the kernel times of forward, backward and update on one device"},
    {"device", "gpu", "what one rank computes on: a GPU, or cores of a node"},
    {"exposed", NULL,
     "communication or input that does not overlap with compute: the iteration with it minus the "
     "iteration without it"},
    {"input", NULL, "column: exposed time of reading, decoding and copying samples"},
    {"interval", "measured",
     "80 % prediction interval: four of five measured runs should lie inside. Measured runs "
     "(--measured) correct the prediction and narrow it. theory F-INTERVAL"},
    {"iteration", "step",
     "one optimizer step: all micro-batches, forward and backward, gradient synchronization, "
     "update"},
    {"jitter", "straggler",
     "spread of the step times of equal devices, as a fraction; all wait for the slowest one "
     "(straggler wait). theory F-STRAGGLER"},
    {"memory", NULL, "most that one device needs, of its capacity; the fullest pipeline stage"},
    {"mfu", NULL,
     "model FLOP/s utilization: useful FLOP/s over the peak of the precision; recomputation does "
     "not count"},
    {"micro-batch", "mb", "samples that pass through the model at once on one device"},
    {"overhead", NULL, "time in which the device waits for its host or for the slowest device"},
    {"plan", "strategy",
     "how the training is split, as in dp8 tp4 pp2 cp2 ep8 v4 mb1 selective zero1 sp: data-, "
     "tensor-, pipeline-, context- and expert-parallel ranks, virtual stages, micro-batch, "
     "recomputation, ZeRO stage, sequence parallelism"},
    {"release", "version", "version of the framework whose constants the prediction uses"},
    {"scaling", "efficiency",
     "weak-scaling efficiency: the iteration of one device without communication over this "
     "iteration; above 100 % only where devices share work that one device does alone"},
    {"system", "machine", "nodes, their devices, and the network: a file of 'list systems'"},
    {"workload", "network", "the model that is trained: a file of 'list workloads'"},
    {NULL, NULL, NULL},
};

static void add(struct dl_text *t, const struct term *term) {
    dl_text_printf(t, "%-12s ", term->name);
    dl_text_wrap(t, term->meaning, 13, 100);
}

void dl_glossary(struct dl_text *t) {
    for (const struct term *term = terms; term->name != NULL; term++) add(t, term);
}

bool dl_glossary_term(struct dl_text *t, const char *name) {
    for (const struct term *term = terms; term->name != NULL; term++) {
        if (strcasecmp(term->name, name) != 0 &&
            (term->alias == NULL || strcasecmp(term->alias, name) != 0))
            continue;
        add(t, term);
        return true;
    }
    return false;
}
