/* document.h - one page for people, as self-contained HTML or as Markdown: headings, paragraphs,
 * facts, tables, figures.
 *
 * All text is data: it is escaped here and nowhere else, so that no name, title or path can
 * become markup. The page loads nothing: style and figures are embedded. */
#ifndef DL_PLOTS_REPORTS_DOCUMENT_H
#define DL_PLOTS_REPORTS_DOCUMENT_H

#include "model/core/table.h"
#include "predict/manual/manual.h"

struct dl_document {
    struct dl_text text;
    bool markdown;
    int figure_count, table_count;
};

struct dl_fact {
    const char *name, *value;
}; /* value NULL: left out */

/* Begins the page. `line` is printed under the title. */
void dl_document_begin(struct dl_document *d, struct dl_arena *arena, bool markdown,
                       const char *title, const char *line);
void dl_document_section(struct dl_document *d, const char *heading);
void dl_document_paragraph(struct dl_document *d, const char *text);
/* The answer: highlighted. */
void dl_document_answer(struct dl_document *d, const char *text);
void dl_document_facts(struct dl_document *d, const struct dl_fact *facts, int count);
/* Columns without heading, and of numbers of which none is known, are left out. */
void dl_document_table(struct dl_document *d, const struct dl_table *table, const char *caption);
void dl_document_code(struct dl_document *d, const char *text);
/* of a list; consecutive ones are one list */
void dl_document_item(struct dl_document *d, const char *text);
void dl_document_items_end(struct dl_document *d);
/* Two drawings of one figure as gnuplot wrote them: for wide screens and paper, and for narrow
 * screens. DL_ERR_SYSTEM when a drawing holds anything but plain shapes and text. */
enum dl_code dl_document_figure(struct dl_document *d, const char *wide, const char *narrow,
                                const char *caption, struct dl_err *err);
/* A figure drawn with characters (Markdown). */
void dl_document_drawing(struct dl_document *d, const char *drawing, const char *caption);
/* Ends the page; the whole text. */
const char *dl_document_end(struct dl_document *d, const char *made_by);

/* An SVG document without prolog as an element of a page: its ids get `prefix`, so that several
 * can stand in one page. Only elements that draw are accepted, and no attribute that could run
 * or load anything. DL_ERR_SYSTEM. */
enum dl_code dl_svg_inline(const char *svg, const char *prefix, struct dl_text *out,
                           struct dl_err *err);

/* Appends `text` with &, <, >, quotes and control characters made harmless; broken UTF-8 becomes
 * U+FFFD. */
void dl_html_add(struct dl_text *out, const char *text);
/* The same for Markdown, in one line. */
void dl_markdown_add(struct dl_text *out, const char *text);

#endif
