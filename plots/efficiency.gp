# efficiency.gp - how much of linear scaling is left?
# Columns: 1 group, 2 label, 3 devices, 4 measured, 5 predicted, 6 and 7 ends of the 80 % interval of the ratio; 4 to 7 as fractions of the
# throughput per device of the smallest run. Also set: measured (1: there are measured runs). Written to standard output.

set logscale x 2
set xlabel 'devices'
set ylabel 'scaling efficiency (% of linear from the smallest run)'
set yrange [0:*]
set offsets graph 0.03, graph 0.03, graph 0.04, 0
percent(c) = 100 * column(c)

if (text) {
    set key maxrows groups + 1
    plot 100 with dots linetype -1 title '100 %: linear', \
         for [g=1:groups] data index g-1 using 3:(percent(5)) with lines linetype g title (measured ? '' : labels[g]), \
         for [g=1:groups] data index g-1 using 3:(percent(4)) with points linetype g, \
         for [g=1:(measured ? groups : 0)] NaN with linespoints linetype g \
             title labels[g].(groups == 1 ? ' (letter: measured, line: predicted)' : '')
} else {
    plot 100 with lines linecolor rgb grey dashtype (8,6) linewidth 1.4 title '100 %: linear', \
         for [g=1:groups] data index g-1 using 3:(percent(6)):(percent(7)) with filledcurves linetype g fillstyle transparent solid band_opacity noborder, \
         for [g=1:groups] data index g-1 using 3:(percent(5)) with lines linetype g, \
         for [g=1:groups] data index g-1 using 3:(percent(4)) with points linetype g pointsize 1.6, \
         NaN with points linecolor rgb (measured ? black : 0xFFFFFF) pointtype 7 pointsize 1.5 title (measured ? 'points: measured' : ''), \
         NaN with lines linecolor rgb black linewidth 2 dashtype 1 title 'lines: predicted', \
         NaN with filledcurves linecolor rgb black fillstyle transparent solid band_opacity noborder title 'bands: 80 % interval of the ratio', \
         for [g=1:groups] NaN with linespoints linetype g pointsize (measured ? 1.6 : 0) title labels[g]
}
