/* predicted_notes.c - messages on predicted rows: warnings and omissions. */
#include <stdlib.h>
#include <string.h>

#include "model/core/text.h"
#include "predict/output/predicted.h"

/* Whether two warnings differ in numbers alone. */
static bool same_kind(const char *a, const char *b) {
    for (;; a++, b++) {
        a += strspn(a, "0123456789.");
        b += strspn(b, "0123456789.");
        if (*a != *b) return false;
        if (*a == 0) return true;
    }
}

struct kind {
    const char *text, *first, *last; /* one of them; the ones with the least and largest number */
    double least, most;              /* of the first number */
    int rows;
};

static double number_of(const char *text) {
    return strtod(text + strcspn(text, "0123456789"), NULL);
}

static const char *names_text(struct dl_arena *arena, const struct dl_predicted *p,
                              const struct kind *kind) {
    enum { SHOWN = 4 };
    const struct dl_framework *before = NULL;
    struct dl_text names = {.arena = arena};
    int count = 0, frameworks = 0;
    for (int i = 0; i < p->count; i++) {
        const struct dl_predicted_row *row = &p->rows[i];
        if (i == 0 || row->framework != p->rows[i - 1].framework) frameworks++;
        for (int k = 0; k < row->prediction.warning_count && row->framework != before; k++) {
            if (!same_kind(row->prediction.warnings[k], kind->text)) continue;
            before = row->framework;
            if (count++ < SHOWN)
                dl_text_printf(&names, "%s%s", count > 1 ? ", " : "", before->name);
        }
    }
    if (frameworks < 2) return "";
    if (count == frameworks) return "all frameworks: ";
    if (count > SHOWN) dl_text_printf(&names, " and %d more", count - SHOWN);
    return dl_arena_printf(arena, "%s: ", dl_text_string(&names));
}

/* "50 to 87 % of ...": of warnings that differ in their first number alone. */
static const char *range_text(struct dl_arena *arena, const struct kind *kind) {
    const char *text = kind->first;
    const size_t head = strcspn(text, "0123456789");
    const char *tail = text + head + strspn(text + head, "0123456789."),
               *other = kind->last + head + strspn(kind->last + head, "0123456789.");
    if (kind->least == kind->most || strcmp(tail, other) != 0) return kind->last;
    return dl_arena_printf(arena, "%.*s%g to %g%s", (int)head, text, kind->least, kind->most, tail);
}

/* The remedy, where the text has none. */
static const char *remedy_of(const char *text) {
    static const struct {
        const char *about, *remedy;
    } remedies[] = {
        {"beyond the kernels measured", "; calibrate that device (dlmodel calibrate) or supply "
                                        "your own measurements (--measured)"},
        {"outside the measured range of the links",
         "; measure collectives there (dlmodel import nccl-tests)"},
        {"memory is tight", ": a smaller batch or --micro-batch, or --recompute"},
    };
    for (size_t i = 0; i < sizeof remedies / sizeof remedies[0]; i++) {
        if (strstr(text, remedies[i].about) != NULL) return remedies[i].remedy;
    }
    return "";
}

void dl_predicted_note_warnings(struct dl_context *context, const struct dl_predicted *p) {
    enum { MOST = 64 };
    struct kind kinds[MOST];
    int count = 0;
    const bool several =
        (p->inputs->framework_count > 1 || p->every_strategy) && dl_recommend(p) != NULL;
    for (int i = 0; i < p->count; i++) {
        /* the table names plans that do not fit; what else is said of them matters to nobody */
        if (several && !p->rows[i].prediction.fits && context->verbosity < 1) continue;
        for (int k = 0; k < p->rows[i].prediction.warning_count; k++) {
            const char *text = p->rows[i].prediction.warnings[k];
            const double number = number_of(text);
            int at = 0;
            while (at < count && !same_kind(kinds[at].text, text)) at++;
            if (at == MOST) continue;
            if (at == count) kinds[count++] = (struct kind){text, text, text, number, number, 0};
            if (number < kinds[at].least) kinds[at].first = text, kinds[at].least = number;
            if (number > kinds[at].most) kinds[at].last = text, kinds[at].most = number;
            kinds[at].rows++;
        }
    }
    for (int i = 0; i < count; i++)
        context->note(context, "warning: %s%s%s", names_text(context->arena, p, &kinds[i]),
                      range_text(context->arena, &kinds[i]), remedy_of(kinds[i].text));
}

/* The part of the reason for an omitted framework that follows its name. */
static const char *reason_of(const struct dl_predicted_skip *s) {
    const size_t length = strlen(s->framework);
    return strncmp(s->why, s->framework, length) == 0
               ? s->why + length + strspn(s->why + length, ": ")
               : s->why;
}

/* Each strategy that the one framework cannot run, with its reason; for all frameworks, only
 * their number. */
static void note_strategies(struct dl_context *context, const struct dl_predicted *p) {
    for (int i = 0; i < p->skipped_count; i++) {
        const struct dl_predicted_skip *s = &p->skipped[i];
        if (strcmp(s->framework, p->skipped[0].framework) != 0 ||
            strcmp(s->framework, p->rows[0].framework->name) != 0) {
            context->note(context,
                          "%d plans of other frameworks cannot run; --framework NAME or --json "
                          "gives the reasons",
                          p->skipped_count - i);
            return;
        }
        if (i == 0 || strcmp(s->strategy, s[-1].strategy) != 0)
            context->note(context, "Omitted: %s (%s)", s->strategy, s->why);
    }
}

/* Each number of nodes on which the one framework cannot run. */
static void note_nodes(struct dl_context *context, const struct dl_predicted *p) {
    for (int i = 0; i < p->skipped_count; i++)
        context->note(context, "Omitted: %lld nodes (%s)", (long long)p->skipped[i].nodes,
                      reason_of(&p->skipped[i]));
}

/* Frameworks omitted for the same reason on one line. */
static void note_frameworks(struct dl_context *context, const struct dl_predicted *p) {
    for (int i = 0; i < p->skipped_count; i++) {
        const struct dl_predicted_skip *first = &p->skipped[i];
        bool listed = false;
        for (int k = 0; k < i && !listed; k++)
            listed = strcmp(reason_of(&p->skipped[k]), reason_of(first)) == 0;
        if (listed) continue;
        const char *names = first->framework;
        for (int k = i + 1; k < p->skipped_count; k++) {
            const struct dl_predicted_skip *s = &p->skipped[k];
            if (strcmp(reason_of(s), reason_of(first)) != 0 ||
                strcmp(s->framework, p->skipped[k - 1].framework) == 0)
                continue;
            names = dl_arena_printf(context->arena, "%s, %s", names, s->framework);
        }
        if (first->nodes == 1)
            context->note(context, "Omitted: %s (%s)", names, reason_of(first));
        else
            context->note(context, "Omitted from %lld nodes on: %s (%s)", (long long)first->nodes,
                          names, reason_of(first));
    }
}

void dl_predicted_note_skipped(struct dl_context *context, const struct dl_predicted *p) {
    const int left_out = p->inputs->left_out;
    if (p->every_strategy)
        note_strategies(context, p);
    else if (p->inputs->framework_count == 1)
        note_nodes(context, p);
    else
        note_frameworks(context, p);
    if (left_out > 0)
        context->note(context,
                      "%d discontinued, proprietary, lossy, or asynchronous framework%s omitted "
                      "(--all-frameworks shows them, dlmodel list frameworks names them)",
                      left_out, left_out == 1 ? "" : "s");
}
