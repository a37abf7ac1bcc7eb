/* run_command.c - runs a command and captures its output and messages. */
#include "serve/run_command.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "import/foreign_model.h"
#include "model/core/text.h"
#include "predict/inputs/plan_file.h"

/* Captured output and messages; owner of the command's context and options. */
struct capture {
    const struct dl_service *service;
    struct dl_arena *arena;
    const struct dl_request *request;
    struct dl_text text, remarks;
};

static enum dl_code take_output(const struct dl_options *options, const char *text,
                                struct dl_err *err) {
    (void)err;
    struct capture *capture = options->owner;
    dl_text_add(&capture->text, text);
    return DL_OK;
}

/* A client needs no folder of this machine: "/usr/share/dlmodel/data/systems/x.json" becomes
 * "systems/x.json", and the folder alone its last name. */
static void hide_folder(const char *folder, char *text) {
    const size_t length = strlen(folder);
    const char *slash = strrchr(folder, '/');
    if (slash == NULL) return;
    for (char *at = text; (at = strstr(at, folder)) != NULL;) {
        const size_t hidden = at[length] == '/' ? length + 1 : (size_t)(slash + 1 - folder);
        memmove(at, at + hidden, strlen(at + hidden) + 1);
        at += at[0] != '\0';
    }
}

static void hide_folders(const struct dl_service *service, char *text) {
    const struct dl_context *c = service->context;
    for (int i = 0; i < c->data.directory_count; i++) hide_folder(c->data.directories[i], text);
    for (int i = 0; i < c->script_root_count; i++) hide_folder(c->script_roots[i], text);
}

static void take_note(const struct dl_context *context, const char *format, ...) {
    struct capture *capture = context->owner;
    char text[4096];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    dl_text_printable(text, "\n\t");
    hide_folders(capture->service, text);
    dl_text_printf(&capture->remarks, "%s\n", text);
}

static int take_progress(void *user, double done_frac, double elapsed_s) {
    const struct dl_request *request = user;
    char text[80];
    snprintf(text, sizeof text, "{\"done_frac\": %.3f, \"elapsed_s\": %.3f}", done_frac, elapsed_s);
    request->progress(request->progress_target, text);
    return 0; /* cancelling kills this process */
}

const struct dl_command *dl_service_command(const struct dl_service *service, const char *name) {
    for (int i = 0; service->context->commands[i] != NULL; i++) {
        if (strcmp(service->context->commands[i]->name, name) == 0)
            return service->context->commands[i];
    }
    return NULL;
}

/* Documents of the request, then those of the service. */
static void attach_all(const struct dl_service *service, const struct dl_words *words,
                       struct dl_arena *arena, struct dl_data *data) {
    const struct dl_documents *own = service->documents;
    const int count = words->attached_count + own->count;
    struct dl_attachment *all = dl_arena_alloc(arena, (size_t)count, sizeof *all);
    for (int i = 0; i < count; i++)
        all[i] =
            i < words->attached_count ? words->attached[i] : own->list[i - words->attached_count];
    data->attachments = all;
    data->attachment_count = count;
    data->names_only = true;
}

struct call {
    const struct dl_service *service;
    struct dl_context *context;
    const struct dl_command *command;
    struct dl_words *words;
};

static enum dl_code run(void *state, struct dl_err *err) {
    const struct call *call = state;
    struct dl_context *context = call->context;
    const struct dl_command *command = call->command;
    struct dl_words *words = call->words;
    attach_all(call->service, words, context->arena, &context->data);
    struct dl_options *options = dl_arena_alloc(context->arena, 1, sizeof *options);
    DL_TRY(dl_options_parse(command->options, words->count, words->list, options, err));
    options->owner = context->owner;
    dl_workload_files_allow(dl_arena_alloc(context->arena, 1, sizeof(struct dl_workload_files)),
                            context);
    DL_TRY(dl_plan_file_apply(context, command, options, err));
    return command->run(context, options, err);
}

void dl_run_command(const struct dl_service *service, const struct dl_command *command,
                    struct dl_words *words, const struct dl_request *request,
                    struct dl_arena *arena, struct dl_ran *out) {
    struct capture capture = {.service = service,
                              .arena = arena,
                              .request = request,
                              .text = {.arena = arena},
                              .remarks = {.arena = arena}};
    struct dl_context context = *service->context;
    context.arena = arena;
    context.owner = &capture;
    context.output = take_output;
    context.output_part = NULL;
    context.note = take_note;
    context.verbosity = 0;
    context.color = context.progress = false;
    if (request->progress != NULL) {
        context.watch = take_progress;
        context.watch_user = (void *)(uintptr_t)request;
    }
    *out = (struct dl_ran){.code = DL_OK};
    struct call call = {service, &context, command, words};
    out->code = dl_guarded(run, &call, &out->err);
    out->text = capture.text.length > 0 ? dl_text_string(&capture.text) : NULL;
    out->notes = capture.remarks.length > 0 ? dl_text_string(&capture.remarks) : "";
    hide_folders(service, out->err.file);
    hide_folders(service, out->err.message);
}

void dl_answer_text(int status, enum dl_media media, const char *text, struct dl_answer *out) {
    static const char failed[] = "{\"title\":\"Internal Server Error\",\"status\":500,"
                                 "\"detail\":\"out of memory\"}\n";
    *out = (struct dl_answer){.status = text == NULL ? 500 : status,
                              .media = text == NULL ? DL_MEDIA_PROBLEM : media,
                              .text = text == NULL ? failed : text};
    out->bytes = strlen(out->text);
}

const char *dl_status_title(int status) {
    switch (status) {
    case 400: return "Bad Request";
    case 401: return "Unauthorized";
    case 403: return "Forbidden";
    case 404: return "Not Found";
    case 405: return "Method Not Allowed";
    case 413: return "Content Too Large";
    case 415: return "Unsupported Media Type";
    case 421: return "Misdirected Request";
    case 422: return "Unprocessable Content";
    case 429: return "Too Many Requests";
    case 503: return "Service Unavailable";
    case 504: return "Gateway Timeout";
    default: return "Internal Server Error";
    }
}

void dl_answer_problem(int status, const char *detail, const char *key, int line, int col,
                       struct dl_arena *arena, struct dl_answer *out) {
    struct dl_json_writer w;
    dl_jw_init(&w, arena, false);
    dl_jw_object(&w, NULL);
    dl_jw_string(&w, "type", "about:blank");
    dl_jw_string(&w, "title", dl_status_title(status));
    dl_jw_integer(&w, "status", status);
    dl_jw_string(&w, "detail", detail);
    if (key != NULL && key[0] != '\0') dl_jw_string(&w, "key", key);
    if (line > 0) {
        dl_jw_integer(&w, "line", line);
        dl_jw_integer(&w, "column", col);
    }
    dl_answer_text(status, DL_MEDIA_PROBLEM, dl_jw_text(&w), out);
}

static int status_of(enum dl_code code) {
    switch (code) {
    case DL_OK: return 200;
    case DL_ERR_USAGE: return 400;
    case DL_ERR_NO:
    case DL_ERR_INPUT:
    case DL_ERR_RANGE: return 422;
    default: return 500;
    }
}

void dl_answer_ran(const struct dl_ran *ran, enum dl_media media, struct dl_arena *arena,
                   struct dl_answer *out) {
    /* DL_ERR_NO with output, such as a plan that does not fit, is an answer. */
    if (ran->code == DL_OK ||
        (ran->text != NULL && (ran->code == DL_ERR_NO || ran->code == DL_ERR_RANGE))) {
        dl_answer_text(200, media, ran->text == NULL ? "" : ran->text, out);
    } else {
        const struct dl_err *e = &ran->err;
        const char *detail =
            e->file[0] == '\0' ? e->message : dl_arena_printf(arena, "%s: %s", e->file, e->message);
        dl_answer_problem(status_of(ran->code), detail, e->key, e->line, e->col, arena, out);
    }
    out->exit = ran->code;
}
