/* call.c - a request in JSON, answered by the program's own commands. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "import/foreign_model.h"
#include "library/library.h"
#include "predict/inputs/plan_file.h"

extern const struct dl_command dl_cmd_predict, dl_cmd_search, dl_cmd_campaign, dl_cmd_explain,
    dl_cmd_compare, dl_cmd_advise, dl_cmd_match, dl_cmd_list, dl_cmd_schema;

static const struct dl_command *const commands[] = {
    &dl_cmd_predict, &dl_cmd_search, &dl_cmd_campaign, &dl_cmd_explain, &dl_cmd_compare,
    &dl_cmd_advise,  &dl_cmd_match,  &dl_cmd_list,     &dl_cmd_schema,  NULL};
/* They write files or another text than JSON, or give --set and --where twice. */
static const char *const refused[] = {
    "output", "format", "json",          "csv",       "help",  "trace",     "export",
    "merge",  "sweep",  "markdown",      "leave-out", "fit",   "intervals", "generalize",
    "tables", "write",  "fit-constants", "set",       "where", NULL};

struct request {
    const char *command;
    struct dl_map_entry *options, *set, *where, *files;
    int option_count, set_count, where_count, file_count;
    const char **arguments;
    int argument_count;
};
#define MAP(member_, count_, ...)                                                                  \
    DL_FIELD(struct request, member_, MAP, .count_offset = offsetof(struct request, count_),       \
             __VA_ARGS__)
static const struct dl_field request_fields[] = {
    DL_FIELD(struct request, command, STRING, .required = true, .help = "what to do"),
    MAP(options, option_count, .help = "options without their dashes"),
    MAP(set, set_count, .help = "what-ifs: KEY and value"),
    MAP(where, where_count, .help = "rows to compare: COLUMN and value"),
    DL_FIELD(struct request, arguments, STRINGS,
             .count_offset = offsetof(struct request, argument_count),
             .help = "arguments that are not options: tables, a kind"),
    MAP(files, file_count, .help = "files that come with the request: name and text"),
    {.key = NULL},
};
static const struct dl_schema request_schema = {.name = "request",
                                                .summary = "a request of libdlmodel",
                                                .size = sizeof(struct request),
                                                .fields = request_fields};

enum { MAX_MESSAGES = 256 };
struct dlmodel_answer {
    struct dl_arena arena;
    struct dl_lent_memo *lent; /* during the call */
    enum dlmodel_status status;
    const char *json, *error;
    const char *messages[MAX_MESSAGES];
    int message_count;
};

static enum dl_code take_output(const struct dl_options *options, const char *text,
                                struct dl_err *err) {
    (void)err;
    struct dlmodel_answer *a = options->owner;
    a->json = dl_arena_strdup(&a->arena, text);
    return DL_OK;
}

static void take_note(const struct dl_context *context, const char *format, ...) {
    struct dlmodel_answer *a = context->owner;
    char text[4096];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    if (a->message_count < MAX_MESSAGES)
        a->messages[a->message_count++] = dl_arena_strdup(&a->arena, text);
}

static enum dl_code find_command(const char *name, const struct dl_command **out,
                                 struct dl_err *err) {
    char all[256] = "";
    for (int i = 0; commands[i] != NULL; i++) {
        if (strcmp(commands[i]->name, name) == 0) {
            *out = commands[i];
            return DL_OK;
        }
        snprintf(all + strlen(all), sizeof all - strlen(all), "%s%s", i > 0 ? ", " : "",
                 commands[i]->name);
    }
    return dl_fail(err, DL_ERR_USAGE, "no command \"%.60s\"; there are %s", name, all);
}

static bool is_flag(const struct dl_command *command, const char *name) {
    for (int t = 0; command->options[t] != NULL; t++) {
        for (const struct dl_option *o = command->options[t]; o->name != NULL; o++)
            if (strcmp(o->name, name) == 0) return o->argument == NULL;
    }
    return false;
}

struct words {
    struct dl_arena *arena;
    char **list;
    int count;
};

static void add_word(struct words *w, char *word) { w->list[w->count++] = word; }

static enum dl_code add_option(struct words *w, const struct dl_command *command,
                               const struct dl_map_entry *e, struct dl_err *err) {
    for (int i = 0; refused[i] != NULL; i++) {
        if (strcmp(refused[i], e->key) == 0)
            return dl_fail(err, DL_ERR_USAGE, "\"%s\" is no option of a request", e->key);
    }
    if (!is_flag(command, e->key)) {
        add_word(w, dl_arena_printf(w->arena, "--%s=%s", e->key, e->text));
        return DL_OK;
    }
    if (e->number == 0) return DL_OK;
    if (e->number == 1) {
        add_word(w, dl_arena_printf(w->arena, "--%s", e->key));
        return DL_OK;
    }
    return dl_fail(err, DL_ERR_USAGE, "\"%s\" takes true or false, got \"%.60s\"", e->key, e->text);
}

/* The command line that the request stands for; --json comes last. */
static enum dl_code words_of(const struct request *q, const struct dl_command *command,
                             struct words *w, struct dl_err *err) {
    const int most = q->option_count + q->set_count + q->where_count + q->argument_count + 2;
    w->list = dl_arena_alloc(w->arena, (size_t)most, sizeof *w->list);
    for (int i = 0; i < q->option_count; i++) DL_TRY(add_option(w, command, &q->options[i], err));
    for (int i = 0; i < q->set_count; i++)
        add_word(w, dl_arena_printf(w->arena, "--set=%s=%s", q->set[i].key, q->set[i].text));
    for (int i = 0; i < q->where_count; i++)
        add_word(w, dl_arena_printf(w->arena, "--where=%s=%s", q->where[i].key, q->where[i].text));
    add_word(w, dl_arena_strdup(w->arena, "--json"));
    add_word(w, dl_arena_strdup(w->arena, "--"));
    for (int i = 0; i < q->argument_count; i++)
        add_word(w, dl_arena_strdup(w->arena, q->arguments[i]));
    return DL_OK;
}

static void take_files(const struct request *q, struct dl_data *data, struct dl_arena *arena) {
    struct dl_attachment *list = dl_arena_alloc(arena, (size_t)q->file_count, sizeof *list);
    for (int i = 0; i < q->file_count; i++) {
        const char *text = q->files[i].text;
        list[i] =
            (struct dl_attachment){.name = q->files[i].key, .text = text, .length = strlen(text)};
    }
    data->attachments = list;
    data->attachment_count = q->file_count;
}

struct call {
    struct dlmodel_context *context;
    const char *request;
    const struct dlmodel_watch *watch;
    struct dlmodel_answer *answer;
    const char *who;
};

static enum dl_code answer(void *state, struct dl_err *err) {
    struct call *call = state;
    struct dlmodel_context *c = call->context;
    struct dlmodel_answer *a = call->answer;
    const char *text = call->request;
    const struct dl_command *command = NULL;
    struct dl_json *doc;
    struct request q;
    struct words w = {.arena = &a->arena};
    struct dl_workload_files *workload_files = dl_arena_alloc(&a->arena, 1, sizeof *workload_files);
    struct dl_options *options = dl_arena_alloc(&a->arena, 1, sizeof *options);
    struct dl_context context = {.program = "",
                                 .arena = &a->arena,
                                 .commands = commands,
                                 .output = take_output,
                                 .note = take_note,
                                 .owner = a,
                                 .profile_path = c->local_profile,
                                 .memo = a->lent != NULL ? &a->lent->memo : NULL,
                                 .data = dl_library_data(c)};
    if (call->watch != NULL) {
        context.watch = call->watch->progress;
        context.watch_user = call->watch->user;
    }
    DL_TRY(dl_library_check(c, err));
    DL_TRY(dl_json_parse("request", text, strlen(text), &a->arena, &doc, err));
    DL_TRY(dl_json_load(doc, &request_schema, &a->arena, &q, err));
    DL_TRY(find_command(q.command, &command, err));
    call->who = dl_arena_printf(&a->arena, "dlmodel %s", command->name);
    take_files(&q, &context.data, &a->arena);
    dl_workload_files_allow(workload_files, &context);
    DL_TRY(words_of(&q, command, &w, err));
    DL_TRY(dl_options_parse(command->options, w.count, w.list, options, err));
    options->owner = a;
    DL_TRY(dl_plan_file_apply(&context, command, options, err));
    return command->run(&context, options, err);
}

struct failure {
    struct dlmodel_answer *answer;
    const struct dl_err *err;
    const char *who;
};

static enum dl_code write_error(void *state, struct dl_err *ignored) {
    const struct failure *f = state;
    struct dl_arena *arena = &f->answer->arena;
    const struct dl_err *err = f->err;
    (void)ignored;
    static const char *const kinds[] = {"ok",    "no",     "usage",   "input",
                                        "range", "system", "backend", "cancelled"};
    struct dl_json_writer w;
    char text[2048];
    dl_err_text(err, f->who, text, sizeof text);
    dl_jw_init(&w, arena, false);
    dl_jw_object(&w, NULL);
    dl_jw_object(&w, "error");
    dl_jw_integer(&w, "status", (int64_t)err->code);
    dl_jw_string(&w, "kind", kinds[err->code]);
    dl_jw_string(&w, "message", err->message);
    if (err->key[0] != 0) dl_jw_string(&w, "key", err->key);
    if (err->file[0] != 0) dl_jw_string(&w, "file", err->file);
    if (err->line > 0) dl_jw_integer(&w, "line", err->line);
    if (err->line > 0) dl_jw_integer(&w, "column", err->col);
    dl_jw_string(&w, "text", text);
    dl_jw_end(&w);
    dl_jw_end(&w);
    f->answer->error = dl_arena_printf(arena, "%s\n", w.text);
    return DL_OK;
}

DL_PUBLIC struct dlmodel_answer *dlmodel_call(struct dlmodel_context *context, const char *request,
                                              const struct dlmodel_watch *watch) {
    struct dlmodel_answer *a = calloc(1, sizeof *a);
    struct dl_err err = {.code = DL_OK};
    if (a == NULL) return NULL;
    const locale_t callers = uselocale(context->plain);
    a->lent = dl_library_lend(context);
    struct call call = {context, request != NULL ? request : "", watch, a, "dlmodel"};
    enum dl_code code = dl_guarded(answer, &call, &err);
    dl_library_take_back(context, a->lent, code);
    a->lent = NULL;
    a->status = (enum dlmodel_status)code;
    if (code == DL_OK && a->json == NULL) a->json = ""; /* it printed nothing */
    if (code != DL_OK) {
        static const char no_memory[] =
            "{\"error\": {\"status\": 5, \"kind\": \"system\", \"message\": \"out of memory\"}}\n";
        a->error = no_memory;
        struct failure failure = {a, &err, call.who};
        (void)dl_guarded(write_error, &failure, NULL);
        if (a->json == NULL || code == DL_ERR_SYSTEM) a->json = a->error;
    }
    uselocale(callers);
    return a;
}

DL_PUBLIC enum dlmodel_status dlmodel_answer_status(const struct dlmodel_answer *a) {
    return a->status;
}
DL_PUBLIC const char *dlmodel_answer_json(const struct dlmodel_answer *a) { return a->json; }
DL_PUBLIC const char *dlmodel_answer_error(const struct dlmodel_answer *a) { return a->error; }
DL_PUBLIC const char *dlmodel_answer_message(const struct dlmodel_answer *a, int index) {
    return index >= 0 && index < a->message_count ? a->messages[index] : NULL;
}

DL_PUBLIC void dlmodel_answer_free(struct dlmodel_answer *a) {
    if (a == NULL) return;
    dl_arena_free(&a->arena);
    free(a);
}
