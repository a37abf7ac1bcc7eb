# campaign.gp - which task of a campaign ran on which slot, when?
# Columns: 1 group (rung from 1), 2 slot, 3 start, 4 beginning of training and 5 end in s, 6 whether it failed, 7 trial.
# Also set: unit (name) and unit_s (its size in s) of the axis, slots, named (1: few enough tasks to name). Written to standard output.

# the number of a trial where its bar has room for it
stats data using 5 nooutput
trial_name(number, width_s) = (width_s > 0.016 * STATS_max * strlen(sprintf('%d', number)) ? sprintf('%d', number) : '')

array colors[6] = [0x0072B2, 0xE69F00, 0x009E73, 0xCC79A7, 0x56B4E9, 0xD55E00]
of(g) = (column(1) == g && column(6) == 0 ? column(4) / unit_s : NaN)
to(g) = (column(1) == g && column(6) == 0 ? column(5) / unit_s : NaN)
lost(x) = (column(6) != 0 ? x / unit_s : NaN)

set xlabel sprintf('time (%s)', unit)
set ylabel 'slot'
set yrange [slots - 0.4 : -0.6]
set xrange [0:*]
if (slots <= 20) { set ytics 1 }
set grid noytics
set key horizontal maxrows 2
set offsets 0, graph 0.02, 0, 0
thin = (slots > 100 ? 0 : 0.3)

if (text) {
    plot for [g=1:groups] data using (of(g)):2:(to(g) - of(g)):(0) with vectors nohead linetype g title labels[g]
} else {
    plot data using (($3 + $4) / 2 / unit_s):2:($3 / unit_s):($4 / unit_s):($2 - 0.4):($2 + 0.4) with boxxyerror \
             fillstyle solid 1 noborder linecolor rgb '#DDDDDD' title 'start, data', \
         for [g=1:groups] data using ((of(g) + to(g)) / 2):2:(of(g)):(to(g)):($2 - 0.4):($2 + 0.4) with boxxyerror \
             fillstyle solid 1 border linecolor rgb black linecolor rgb colors[(g - 1) % 6 + 1] dashtype 1 linewidth thin title labels[g], \
         data using (lost(($4 + $5) / 2)):2:(lost($4)):(lost($5)):($2 - 0.4):($2 + 0.4) with boxxyerror \
             fillstyle pattern 4 border linecolor rgb black linecolor rgb black linewidth thin title 'failed', \
         data using (named ? ($4 + $5) / 2 / unit_s : NaN):2:(trial_name($7, $5 - $4)) with labels textcolor rgb (groups > 3 ? black : 0xFFFFFF) notitle
}
