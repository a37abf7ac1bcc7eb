# scaling.gp - how does throughput grow with devices, and how near is the prediction?
# Columns: 1 group, 2 label, 3 devices, 4 measured, 5 predicted, 6 and 7 ends of its 80 % interval, 8 ideal; 4 to 8 in samples/s.
# Also set: measured (1: there are measured runs). Measured: points. Predicted: line and band. Ideal: dashed grey.
# Written to standard output.

set logscale x 2
set logscale y 2
set xlabel 'devices'
set ylabel 'throughput (samples/s)'
set format y '%.10g'
set offsets graph 0.03, graph 0.03, graph 0.04, graph 0.04

if (text) {
    set key maxrows groups + 1
    plot for [g=1:groups] data index g-1 using 3:8 with dots linetype -1 title (g == 1 ? 'ideal: linear from the smallest run' : ''), \
         for [g=1:groups] data index g-1 using 3:5 with lines linetype g title (measured ? '' : labels[g]), \
         for [g=1:groups] data index g-1 using 3:4 with points linetype g, \
         for [g=1:(measured ? groups : 0)] NaN with linespoints linetype g \
             title labels[g].(groups == 1 ? ' (letter: measured, line: predicted)' : '')
} else {
    plot for [g=1:groups] data index g-1 using 3:6:7 with filledcurves linetype g fillstyle transparent solid band_opacity noborder, \
         for [g=1:groups] data index g-1 using 3:8 with lines linecolor rgb grey dashtype (8,6) linewidth 1.4, \
         for [g=1:groups] data index g-1 using 3:6:(0):($7-$6) with vectors heads size graph 0.004,90 linetype g dashtype 1 linewidth 0.8, \
         for [g=1:groups] data index g-1 using 3:5 with lines linetype g, \
         for [g=1:groups] data index g-1 using 3:4 with points linetype g pointsize 1.6, \
         NaN with points linecolor rgb (measured ? black : 0xFFFFFF) pointtype 7 pointsize 1.5 title (measured ? 'points: measured' : ''), \
         NaN with lines linecolor rgb black linewidth 2 dashtype 1 title 'lines: predicted', \
         NaN with filledcurves linecolor rgb black fillstyle transparent solid band_opacity noborder title 'bands, bars: 80 % interval', \
         NaN with lines linecolor rgb grey dashtype (8,6) linewidth 1.4 title 'ideal: linear from smallest', \
         for [g=1:groups] NaN with linespoints linetype g pointsize (measured ? 1.6 : 0) title labels[g]
}
