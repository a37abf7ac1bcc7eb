/* example.c - libdlmodel in forty lines: from how many nodes on does communication cost more than a
 * tenth of an iteration?
 *
 *     cc example.c $(pkg-config --cflags --libs dlmodel) -o example && ./example resnet50 dgx1-v100
 */
#include <dlmodel.h>
#include <stdio.h>

static int fail(const struct dlmodel *m) {
    fprintf(stderr, "%s\n", dlmodel_error(m));
    return 1;
}

int main(int argc, char **argv) {
    struct dlmodel *m = dlmodel_open(NULL); /* $DLMODEL_DATA, else where dlmodel is installed */
    const char *const options[][2] = {{"workload", argc > 1 ? argv[1] : "resnet50"},
                                      {"system", argc > 2 ? argv[2] : "dgx1-v100"},
                                      {"framework", "horovod-pytorch"},
                                      {"precision", "mixed"}};
    int status = 0;
    if (m == NULL) return 1;
    for (size_t i = 0; i < sizeof options / sizeof *options && status == 0; i++) {
        if (dlmodel_option(m, options[i][0], options[i][1]) != DLMODEL_OK) status = fail(m);
    }
    for (int nodes = 1; nodes <= 64 && status == 0; nodes *= 2) {
        char text[16];
        snprintf(text, sizeof text, "%d", nodes);
        if (dlmodel_option(m, "nodes", text) != DLMODEL_OK || dlmodel_predict(m) != DLMODEL_OK) {
            status = fail(m);
            break;
        }
        const double share = dlmodel_value(m, "exposed_comm_s") / dlmodel_value(m, "iteration_s");
        printf("%2d nodes: %.6g s an iteration, %.1f %% of it communication, bound by %s%s\n",
               nodes, dlmodel_value(m, "iteration_s"), 100 * share, dlmodel_text(m, "bottleneck"),
               dlmodel_value(m, "fits") > 0 ? "" : ", does not fit");
        for (int i = 0; dlmodel_warning(m, i) != NULL; i++)
            printf("          %s\n", dlmodel_warning(m, i));
        if (share > 0.1) break;
    }
    dlmodel_close(m);
    return status;
}
