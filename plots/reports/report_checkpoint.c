/* report_checkpoint.c - the part of a page about checkpoints and failures, with --checkpoint. */
#include "predict/output/checkpoint_inputs.h"
#include "plots/reports/report.h"

enum dl_code dl_report_checkpoint(struct dl_report *r, const struct dl_options *options,
                                  const struct dl_prediction_row *row, struct dl_err *err) {
    struct dl_table table;
    const char *sentence;
    DL_TRY(dl_checkpoint_table(r->context, options, row, &table, &sentence, err));
    if (sentence[0] == 0) return DL_OK;
    dl_document_section(&r->page, "Checkpoints and failures");
    dl_document_paragraph(&r->page, sentence);
    dl_document_table(&r->page, &table,
                      "What a checkpoint costs by format (F-CKPT-COST, F-CKPT-SERIALIZE): time of "
                      "the cores, of the whole write, and what training waits for; the share of "
                      "the time that trains.");
    return dl_report_figure(r, options, dl_plot_checkpoint, "checkpoint",
                            "Time lost to checkpoints, failures and restarts against the interval "
                            "between checkpoints.",
                            err);
}
