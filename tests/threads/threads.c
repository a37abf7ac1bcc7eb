/* threads.c - eight threads ask one context at once, and each gets what a thread alone gets. Also a
 * program for measuring calls: threads DATA [SECONDS]. Built with -fsanitize=thread it finds races.
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "include/dlmodel.h"

enum { THREADS = 8, ROUNDS = 6 };

static const char *const requests[] = {
    "{\"command\": \"predict\", \"options\": {\"system\": \"iris-v100\", \"workload\": "
    "\"resnet50\", "
    "\"framework\": \"pytorch-ddp\", \"nodes\": 16}}",
    "{\"command\": \"predict\", \"options\": {\"system\": \"dgx-a100-80\", \"workload\": "
    "\"gpt2_xl\", "
    "\"framework\": \"megatron\", \"nodes\": 4}}",
    "{\"command\": \"predict\", \"options\": {\"system\": \"dgx1-v100\", \"workload\": \"vgg16\", "
    "\"nodes\": \"1-16*2\"}, \"set\": {\"links.inter.bandwidth\": \"25GB/s\"}}",
    "{\"command\": \"explain\", \"options\": {\"system\": \"summit-v100\", \"workload\": "
    "\"bert_large\", \"framework\": \"horovod-pytorch\", \"nodes\": 8}}",
    "{\"command\": \"search\", \"options\": {\"system\": \"dgx-a100-80\", \"workload\": "
    "\"gpt2_xl\", \"nodes\": 4, \"global-batch\": 256, \"threads\": 1}}",
    /* objects that live for one call, so that memory of theirs is used again */
    "{\"command\": \"predict\", \"options\": {\"system\": \"dgx-a100-80\", \"workload\": "
    "\"gpt:layers=24,hidden=1024,heads=16,seq=1024,vocab=51200\", \"framework\": \"megatron\", "
    "\"nodes\": 2}}",
    "{\"command\": \"predict\", \"options\": {\"system\": \"dgx-a100-80\", \"workload\": "
    "\"gpt:layers=24,hidden=2048,heads=16,seq=1024,vocab=51200\", \"framework\": \"megatron\", "
    "\"nodes\": 2}}",
    "{\"command\": \"predict\", \"options\": {\"system\": \"iris-v100\", \"framework\": "
    "\"pytorch-ddp\", \"nodes\": 2}, \"set\": {\"device.memory_bandwidth\": \"450GB/s\"}}",
    "{\"command\": \"predict\", \"options\": {\"system\": \"iris-v100\", \"framework\": "
    "\"pytorch-ddp\", \"nodes\": 2}, \"set\": {\"device.memory_bandwidth\": \"1800GB/s\"}}",
    "{\"command\": \"predict\", \"options\": {\"workload\": \"vgg61\"}}",
    "{\"command\": \"predict\", \"options\": {\"workload\": ",
};
enum { REQUESTS = sizeof requests / sizeof requests[0] };

struct test {
    struct dlmodel_context *context;
    char *expected[REQUESTS];
    int first, wrong;
};

/* Without the time that a search took. */
static char *answer_of(struct dlmodel_context *context, const char *request) {
    struct dlmodel_answer *a = dlmodel_call(context, request, NULL);
    if (a == NULL) return NULL;
    const char *json = dlmodel_answer_json(a), *time = strstr(json, "\"elapsed_s\"");
    const size_t length = time != NULL ? (size_t)(time - json) : strlen(json);
    const char *rest = time != NULL ? strchr(time, '\n') : "";
    char *copy = malloc(length + strlen(rest) + 1);
    if (copy != NULL) {
        memcpy(copy, json, length);
        memcpy(copy + length, rest, strlen(rest) + 1);
    }
    dlmodel_answer_free(a);
    return copy;
}

static void *ask(void *argument) {
    struct test *t = argument;
    for (int i = 0; i < ROUNDS * REQUESTS; i++) {
        const int which = (i + t->first) % REQUESTS;
        char *got = answer_of(t->context, requests[which]);
        if (got == NULL || strcmp(got, t->expected[which]) != 0) t->wrong++;
        free(got);
    }
    return NULL;
}

static int run_threads(const struct dlmodel_settings *settings) {
    static struct test tests[THREADS];
    pthread_t ids[THREADS];
    char *expected[REQUESTS];
    int wrong = 0;
    for (int r = 0; r < REQUESTS; r++) { /* each in a context of its own */
        struct dlmodel_context *alone = dlmodel_context_open(settings);
        expected[r] = alone == NULL ? NULL : answer_of(alone, requests[r]);
        dlmodel_context_close(alone);
        if (expected[r] == NULL) return 1;
    }
    struct dlmodel_context *context = dlmodel_context_open(settings);
    for (int i = 0; i < THREADS; i++) {
        tests[i] = (struct test){.context = context, .first = i};
        memcpy(tests[i].expected, expected, sizeof expected);
        if (pthread_create(&ids[i], NULL, ask, &tests[i]) != 0) return 1;
    }
    for (int i = 0; i < THREADS; i++) {
        pthread_join(ids[i], NULL);
        wrong += tests[i].wrong;
    }
    dlmodel_context_close(context);
    for (int r = 0; r < REQUESTS; r++) free(expected[r]);
    printf("%s: %d threads, %d calls, %d answers differ from those of one thread\n",
           wrong == 0 ? "ok" : "FAILED", THREADS, THREADS * ROUNDS * REQUESTS, wrong);
    return wrong == 0 ? 0 : 1;
}

static double now_s(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static int by_value(const void *a, const void *b) {
    const double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y ? 1 : 0;
}

/* Predictions a second on one thread, with another number of nodes each time: median of parts of a
 * tenth of the time. */
static int measure(const struct dlmodel_settings *settings, double seconds) {
    static const struct {
        const char *name, *request;
    } cases[] = {
        {"ResNet-50", "{\"command\": \"predict\", \"options\": {\"system\": \"iris-v100\", "
                      "\"workload\": \"resnet50\", \"framework\": \"pytorch-ddp\", "
                      "\"nodes\": %d}}"},
        {"GPT", "{\"command\": \"predict\", \"options\": {\"system\": \"dgx-a100-80\", "
                "\"workload\": \"gpt2_xl\", \"framework\": \"megatron\", \"nodes\": %d}}"}};
    struct dlmodel_context *context = dlmodel_context_open(settings);
    if (context == NULL) return 1;
    for (size_t c = 0; c < sizeof cases / sizeof cases[0]; c++) {
        double rates[10];
        for (int part = 0; part < 10; part++) {
            const double start_s = now_s();
            int count = 0;
            for (; now_s() - start_s < seconds / 10; count++) {
                char request[512];
                snprintf(request, sizeof request, cases[c].request, 1 << count % 7);
                struct dlmodel_answer *a = dlmodel_call(context, request, NULL);
                if (a == NULL || dlmodel_answer_status(a) != DLMODEL_OK) return 1;
                dlmodel_answer_free(a);
            }
            rates[part] = count / (now_s() - start_s);
        }
        qsort(rates, 10, sizeof rates[0], by_value);
        printf("library, %-10s %6.0f calls a second (%.0f to %.0f), JSON to JSON, one thread\n",
               cases[c].name, (rates[4] + rates[5]) / 2, rates[0], rates[9]);
    }
    dlmodel_context_close(context);
    return 0;
}

int main(int argc, char **argv) {
    if (argc < 2) return 2;
    const struct dlmodel_settings settings = {.data_directory = argv[1]};
    return argc > 2 ? measure(&settings, atof(argv[2])) : run_threads(&settings);
}
