/* form.c - GET /form: the page without scripts: a form of a few fields; the answer is the table of
 * the command line. */
#include <string.h>

#include "model/core/text.h"
#include "serve/run_command.h"

static const struct {
    const char *name, *label, *list;
} fields[] = {
    {"workload", "Model", "workloads"},
    {"system", "Machine", "systems"},
    {"framework", "Framework", "frameworks"},
    {"nodes", "Nodes", NULL},
    {"batch-per-device", "Samples per GPU", NULL},
    {"precision", "Precision", NULL},
    {"global-batch", "Global batch size", NULL},
};
enum { FIELDS = sizeof fields / sizeof fields[0] };

static void add_escaped(struct dl_text *out, const char *text) {
    for (const char *c = text; *c != '\0'; c++) {
        switch (*c) {
        case '&': dl_text_add(out, "&amp;"); break;
        case '<': dl_text_add(out, "&lt;"); break;
        case '>': dl_text_add(out, "&gt;"); break;
        case '"': dl_text_add(out, "&quot;"); break;
        default: dl_text_add_bytes(out, c, 1);
        }
    }
}

static const char *given(const struct dl_words *words, const char *name) {
    const size_t length = strlen(name);
    for (int i = 0; i < words->count; i++) {
        const char *w = words->list[i];
        if (strncmp(w, "--", 2) == 0 && strncmp(w + 2, name, length) == 0 && w[2 + length] == '=')
            return w + 3 + length;
    }
    return "";
}

static void add_list(struct dl_text *out, const struct dl_service *service, const char *list,
                     enum dl_data_kind kind, struct dl_arena *arena) {
    const char **names = NULL;
    dl_data_names(&service->context->data, kind, arena, &names);
    dl_text_printf(out, "<datalist id=\"%s\">", list);
    for (int i = 0; names[i] != NULL; i++) dl_text_printf(out, "<option value=\"%s\">", names[i]);
    dl_text_add(out, "</datalist>\n");
}

static void add_field(struct dl_text *out, int i, const struct dl_words *words) {
    dl_text_printf(out, "<label for=\"%s\">%s</label><input id=\"%s\" name=\"%s\"", fields[i].name,
                   fields[i].label, fields[i].name, fields[i].name);
    if (fields[i].list != NULL) dl_text_printf(out, " list=\"%s\"", fields[i].list);
    dl_text_add(out, " value=\"");
    add_escaped(out, given(words, fields[i].name));
    dl_text_add(out, "\">\n");
}

static void add_answer(struct dl_text *out, const struct dl_ran *ran) {
    if (ran->text != NULL) {
        dl_text_add(out, "<h2>Prediction</h2>\n<pre tabindex=\"0\">");
        add_escaped(out, ran->text);
        dl_text_add(out, "</pre>\n");
    }
    if (ran->code != DL_OK) {
        dl_text_add(out, "<p role=\"alert\" class=\"problem\">");
        if (ran->err.key[0] != '\0') {
            add_escaped(out, ran->err.key);
            dl_text_add(out, ": ");
        }
        add_escaped(out, ran->err.message);
        dl_text_add(out, "</p>\n");
    }
    if (ran->notes != NULL && ran->notes[0] != '\0') {
        dl_text_add(out, "<h2>Notes</h2>\n<pre tabindex=\"0\">");
        add_escaped(out, ran->notes);
        dl_text_add(out, "</pre>\n");
    }
}

void dl_answer_form(const struct dl_service *service, const struct dl_request *request,
                    struct dl_arena *arena, struct dl_answer *out) {
    struct dl_text page = {.arena = arena};
    const struct dl_command *predict = dl_service_command(service, "predict");
    struct dl_words *words = dl_arena_alloc(arena, 1, sizeof *words);
    struct dl_ran *ran = dl_arena_alloc(arena, 1, sizeof *ran);
    ran->code = dl_words_of_form(predict, request->query, arena, words, &ran->err);
    if (ran->code == DL_OK) dl_run_command(service, predict, words, request, arena, ran);
    dl_text_add(&page,
                "<!doctype html>\n<html lang=\"en\">\n<head><meta charset=\"utf-8\">"
                "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">"
                "<title>dlmodel: prediction</title>"
                "<link rel=\"stylesheet\" href=\"page.css\"></head>\n<body class=\"plain\">\n"
                "<main>\n<h1>How will this training scale?</h1>\n"
                "<form action=\"form\" method=\"get\" class=\"fields\">\n");
    for (int i = 0; i < FIELDS; i++) add_field(&page, i, words);
    dl_text_add(&page, "<button>Predict</button>\n</form>\n");
    add_list(&page, service, "workloads", DL_DATA_WORKLOAD, arena);
    add_list(&page, service, "systems", DL_DATA_SYSTEM, arena);
    add_list(&page, service, "frameworks", DL_DATA_FRAMEWORK, arena);
    add_answer(&page, ran);
    dl_text_add(&page, "<p><a href=\"./\">The page with figures</a></p>\n</main>\n</body>\n"
                       "</html>\n");
    dl_answer_text(200, DL_MEDIA_HTML, dl_text_string(&page), out);
    if (ran->code != DL_OK && ran->text == NULL) out->status = 422;
}
