/* document.c - see the header. The style covers two screen widths and paper; colours are those
 * of the figures. */
#include "plots/reports/document.h"

#include <string.h>

#include "model/core/json_node.h"

enum { LONG_CELL = 28 }; /* a text of more bytes may be broken into lines */

static const char *const style[] = {
    ":root{--ink:#1b1f24;--soft:#57606a;--line:#d0d7de;--tint:#f4f7fa;--accent:#0072B2}\n",
    "*{box-sizing:border-box}\n",
    "body{margin:0;color:var(--ink);background:#fff;font:16px/1.5 system-ui,-apple-system,'Segoe "
    "UI',Roboto,'Liberation Sans',sans-serif}\n",
    "main{max-width:72rem;margin:0 auto;padding:1.5rem 1.25rem 3rem}\n",
    "h1{font-size:1.7rem;line-height:1.25;margin:.2rem 0;overflow-wrap:anywhere}\n",
    "h2{font-size:1.2rem;margin:2.4rem 0 .6rem;padding-bottom:.25rem;border-bottom:2px solid "
    "var(--line)}\n",
    "p{margin:.5rem 0;max-width:48rem;overflow-wrap:anywhere}\n",
    ".line,.foot,figcaption,.caption{color:var(--soft)}\n",
    ".line{margin:0 0 1rem}.foot{margin-top:3rem;border-top:1px solid "
    "var(--line);padding-top:.6rem;font-size:.85rem}\n",
    ".answer{font-size:1.1rem;background:var(--tint);border-left:4px solid "
    "var(--accent);padding:.7rem 1rem;max-width:none}\n",
    "dl{display:grid;grid-template-columns:minmax(9rem,max-content) 1fr;gap:.15rem "
    "1.2rem;margin:.6rem 0}\n",
    "dt{color:var(--soft)}dd{margin:0;overflow-wrap:anywhere}\n",
    ".scroll{overflow-x:auto;margin:.2rem 0 1.2rem}.caption{font-size:.9rem;margin:1rem 0 .2rem}\n",
    "table{border-collapse:collapse;font-size:.9rem;font-variant-numeric:tabular-nums}\n",
    "th,td{padding:.28rem .7rem;text-align:right;white-space:nowrap;border-bottom:1px solid "
    "var(--line)}\n",
    "th{border-bottom:2px solid var(--soft);vertical-align:bottom;font-weight:600}th "
    "small{font-weight:400;color:var(--soft)}\n",
    "th.t,td.t{text-align:left}td.long{white-space:normal;min-width:12rem}\n",
    "tbody tr:nth-child(even){background:var(--tint)}\n",
    "figure{margin:1.2rem 0}figure "
    "svg{display:block;width:100%;height:auto}figcaption{font-size:.9rem;margin-top:.3rem}\n",
    ".narrow{display:none}\n",
    "pre{background:var(--tint);padding:.6rem "
    ".8rem;font-size:.85rem;white-space:pre-wrap;overflow-wrap:anywhere;margin:.5rem 0}\n",
    "ul{padding-left:1.2rem;margin:.5rem 0}li{margin:.2rem 0;overflow-wrap:anywhere}\n",
    "@media(max-width:40rem){main{padding:1rem .8rem "
    "2rem}h1{font-size:1.35rem}.wide{display:none}.narrow{display:block}\n",
    "dl{grid-template-columns:1fr;gap:0}dd{margin-bottom:.4rem}th,td{padding:.28rem .4rem}\n",
    "table{font-size:.82rem}th:first-child,td:first-child{position:sticky;left:0;background:#fff}}"
    "\n",
    "@media print{@page{margin:16mm "
    "14mm}body{font-size:10pt}main{max-width:none;padding:0}.wide{display:block}.narrow{display:"
    "none}\n",
    ".scroll{overflow:visible}table{font-size:7.5pt}th,td{padding:.12rem "
    ".35rem}td.long{min-width:0}figure{break-inside:avoid}figure svg{max-height:105mm}\n",
    "h2{break-after:avoid}tr{break-inside:avoid}thead{display:table-header-group}.answer,tbody "
    "tr:nth-child(even),pre{print-color-adjust:exact;-webkit-print-color-adjust:exact}}\n",
    NULL,
};

/* Adds one character of `s`, or its replacement; returns the number of bytes read. */
static int add_character(struct dl_text *out, const unsigned char *s) {
    char piece[5] = {0};
    const int length = (int)dl_utf8_bytes((const char *)s, strnlen((const char *)s, 4));
    if (length == 0)
        dl_text_add(out, "\xEF\xBF\xBD");
    else if (*s < 0x20 || *s == 0x7F)
        dl_text_add(out, *s == '\n' || *s == '\t' ? " " : "?");
    else
        dl_text_add(out, memcpy(piece, s, (size_t)length));
    return length > 0 ? length : 1;
}

void dl_html_add(struct dl_text *out, const char *text) {
    for (const unsigned char *s = (const unsigned char *)(text == NULL ? "" : text); *s != 0;) {
        const char *entity = *s == '&'    ? "&amp;"
                             : *s == '<'  ? "&lt;"
                             : *s == '>'  ? "&gt;"
                             : *s == '"'  ? "&quot;"
                             : *s == '\'' ? "&#39;"
                                          : NULL;
        if (entity != NULL) dl_text_add(out, entity);
        s += entity != NULL ? 1 : add_character(out, s);
    }
}

void dl_markdown_add(struct dl_text *out, const char *text) {
    static const char special[] = "\\`*_[]|#~$";
    for (const unsigned char *s = (const unsigned char *)(text == NULL ? "" : text); *s != 0;) {
        const char *entity = *s == '&' ? "&amp;" : *s == '<' ? "&lt;" : *s == '>' ? "&gt;" : NULL;
        if (entity == NULL && strchr(special, *s) != NULL) dl_text_add(out, "\\");
        if (entity != NULL) dl_text_add(out, entity);
        s += entity != NULL ? 1 : add_character(out, s);
    }
}

static void add(struct dl_document *d, const char *text) {
    if (d->markdown)
        dl_markdown_add(&d->text, text);
    else
        dl_html_add(&d->text, text);
}

static void raw(struct dl_document *d, const char *html, const char *markdown) {
    dl_text_add(&d->text, d->markdown ? markdown : html);
}

void dl_document_begin(struct dl_document *d, struct dl_arena *arena, bool markdown,
                       const char *title, const char *line) {
    *d = (struct dl_document){.text = {.arena = arena}, .markdown = markdown};
    if (!markdown) {
        dl_text_add(
            &d->text,
            "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\"/>\n"
            "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src "
            "'unsafe-inline'\"/>\n"
            "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\"/>\n<title>");
        add(d, title);
        dl_text_add(&d->text, "</title>\n<style>\n");
        for (int i = 0; style[i] != NULL; i++) dl_text_add(&d->text, style[i]);
        dl_text_add(&d->text, "</style>\n</head>\n<body>\n<main>\n");
    }
    raw(d, "<h1>", "# ");
    add(d, title);
    raw(d, "</h1>\n<p class=\"line\">", "\n\n");
    add(d, line);
    raw(d, "</p>\n", "\n\n");
}

void dl_document_section(struct dl_document *d, const char *heading) {
    raw(d, "<h2>", "## ");
    add(d, heading);
    raw(d, "</h2>\n", "\n\n");
}

void dl_document_paragraph(struct dl_document *d, const char *text) {
    raw(d, "<p>", "");
    add(d, text);
    raw(d, "</p>\n", "\n\n");
}

void dl_document_answer(struct dl_document *d, const char *text) {
    raw(d, "<p class=\"answer\">", "> ");
    add(d, text);
    raw(d, "</p>\n", "\n\n");
}

void dl_document_facts(struct dl_document *d, const struct dl_fact *facts, int count) {
    raw(d, "<dl>\n", "");
    for (int i = 0; i < count; i++) {
        if (facts[i].value == NULL) continue;
        raw(d, "<dt>", "- **");
        add(d, facts[i].name);
        raw(d, "</dt><dd>", "**: ");
        add(d, facts[i].value);
        raw(d, "</dd>\n", "\n");
    }
    raw(d, "</dl>\n", "\n");
}

static bool left(const struct dl_column *c) {
    return c->type == DL_COLUMN_STRING || c->type == DL_COLUMN_BOOL;
}

/* Without heading, or of which nothing is known. */
static bool hidden(const struct dl_table *table, int column) {
    if (table->columns[column].heading == NULL) return true;
    if (table->columns[column].type != DL_COLUMN_NUMBER || table->row_count == 0) return false;
    for (int r = 0; r < table->row_count; r++) {
        if (dl_known(dl_table_cells(table, r)[column].number)) return false;
    }
    return true;
}

static void html_head(struct dl_document *d, const struct dl_table *table) {
    dl_text_add(&d->text, "<thead><tr>");
    for (int c = 0; c < table->column_count; c++) {
        const struct dl_column *column = &table->columns[c];
        if (hidden(table, c)) continue;
        dl_text_add(&d->text, left(column) ? "<th class=\"t\">" : "<th>");
        add(d, column->heading);
        if (column->unit != NULL && column->unit[0] != 0) {
            dl_text_add(&d->text, "<br/><small>");
            add(d, column->unit);
            dl_text_add(&d->text, "</small>");
        }
        dl_text_add(&d->text, "</th>");
    }
    dl_text_add(&d->text, "</tr></thead>\n<tbody>\n");
}

static void markdown_head(struct dl_document *d, const struct dl_table *table) {
    dl_text_add(&d->text, "|");
    for (int c = 0; c < table->column_count; c++) {
        const struct dl_column *column = &table->columns[c];
        if (hidden(table, c)) continue;
        dl_text_add(&d->text, " ");
        add(d, column->heading);
        if (column->unit != NULL && column->unit[0] != 0)
            add(d, dl_arena_printf(d->text.arena, " (%s)", column->unit));
        dl_text_add(&d->text, " |");
    }
    dl_text_add(&d->text, "\n|");
    for (int c = 0; c < table->column_count; c++) {
        if (!hidden(table, c)) dl_text_add(&d->text, left(&table->columns[c]) ? "---|" : "---:|");
    }
    dl_text_add(&d->text, "\n");
}

void dl_document_table(struct dl_document *d, const struct dl_table *table, const char *caption) {
    const char *text = dl_arena_printf(d->text.arena, "Table %d. %s", ++d->table_count, caption);
    raw(d, "<p class=\"caption\">", "");
    add(d, text);
    raw(d, "</p>\n<div class=\"scroll\"><table>\n", "\n\n");
    if (d->markdown)
        markdown_head(d, table);
    else
        html_head(d, table);
    for (int r = 0; r < table->row_count; r++) {
        raw(d, "<tr>", "|");
        for (int c = 0; c < table->column_count; c++) {
            if (hidden(table, c)) continue;
            const char *cell = dl_table_cell_text(table, r, c, d->text.arena);
            const bool lines = cell != NULL && strlen(cell) > LONG_CELL;
            raw(d,
                !left(&table->columns[c]) ? "<td>"
                : lines                   ? "<td class=\"t long\">"
                                          : "<td class=\"t\">",
                " ");
            add(d, cell);
            raw(d, "</td>", " |");
        }
        raw(d, "</tr>\n", "\n");
    }
    raw(d, "</tbody>\n</table></div>\n", "\n");
}

/* A fence that does not occur in the text. */
static const char *fence_for(struct dl_arena *arena, const char *text) {
    int longest = 2, run = 0;
    for (const char *s = text; *s != 0; s++) {
        run = *s == '`' ? run + 1 : 0;
        longest = run > longest ? run : longest;
    }
    char *fence = dl_arena_alloc(arena, (size_t)longest + 2, 1);
    memset(fence, '`', (size_t)longest + 1);
    return fence;
}

void dl_document_code(struct dl_document *d, const char *text) {
    if (d->markdown) {
        const char *fence = fence_for(d->text.arena, text);
        dl_text_printf(&d->text, "%s\n", fence);
        dl_text_add(&d->text, text);
        dl_text_printf(&d->text, "\n%s\n\n", fence);
    } else {
        dl_text_add(&d->text, "<pre>");
        add(d, text);
        dl_text_add(&d->text, "</pre>\n");
    }
}

/* The list is open while the text ends in an item. */
static bool in_list(const struct dl_document *d) {
    const char *end = "</li>\n";
    return d->text.length >= 6 && memcmp(d->text.bytes + d->text.length - 6, end, 6) == 0;
}

void dl_document_item(struct dl_document *d, const char *text) {
    if (!d->markdown && !in_list(d)) dl_text_add(&d->text, "<ul>\n");
    raw(d, "<li>", "- ");
    add(d, text);
    raw(d, "</li>\n", "\n");
}

void dl_document_items_end(struct dl_document *d) {
    if (d->markdown)
        dl_text_add(&d->text, "\n");
    else if (in_list(d))
        dl_text_add(&d->text, "</ul>\n");
}

enum dl_code dl_document_figure(struct dl_document *d, const char *wide, const char *narrow,
                                const char *caption, struct dl_err *err) {
    struct dl_arena *arena = d->text.arena;
    const int number = ++d->figure_count;
    const char *text = dl_arena_printf(arena, "Figure %d. %s", number, caption);
    dl_text_add(&d->text, "<figure role=\"img\" aria-label=\"");
    add(d, text);
    dl_text_add(&d->text, "\">\n<div class=\"wide\">");
    DL_TRY(dl_svg_inline(wide, dl_arena_printf(arena, "f%dw-", number), &d->text, err));
    dl_text_add(&d->text, "</div>\n<div class=\"narrow\">");
    DL_TRY(dl_svg_inline(narrow, dl_arena_printf(arena, "f%dn-", number), &d->text, err));
    dl_text_add(&d->text, "</div>\n<figcaption>");
    add(d, text);
    dl_text_add(&d->text, "</figcaption>\n</figure>\n");
    return DL_OK;
}

void dl_document_drawing(struct dl_document *d, const char *drawing, const char *caption) {
    dl_document_code(d, drawing);
    dl_document_paragraph(
        d, dl_arena_printf(d->text.arena, "Figure %d. %s", ++d->figure_count, caption));
}

const char *dl_document_end(struct dl_document *d, const char *made_by) {
    raw(d, "<p class=\"foot\">", "");
    add(d, made_by);
    raw(d, "</p>\n</main>\n</body>\n</html>\n", "\n");
    return dl_text_string(&d->text);
}
