# checkpoint.gp - how often should a job write a checkpoint, and what does that cost in each format?
# Columns: 1 group (format), 2 interval in s, 3 lost share of the time, 4 whether it is the best interval. Written to standard output.

set xlabel 'interval between checkpoints (min)'
set ylabel 'time lost to checkpoints and failures (%)'
set logscale xy
# 1, 2 and 5 of each decade: one curve spans two; of several formats, decades alone
stats data using 2 nooutput
set for [d=-3:6] xtics add (sprintf('%.10g', 10.0**d) 10.0**d)
if (STATS_max / STATS_min < 150) { set for [d=-3:6] xtics add (sprintf('%g', 2 * 10.0**d) 2 * 10.0**d, sprintf('%g', 5 * 10.0**d) 5 * 10.0**d) }
duration(s) = (s < 7200 ? sprintf('%.3g min', s / 60) : sprintf('%.3g h', s / 3600))
set for [d=-4:2] ytics add (sprintf('%g', 10.0**d) 10.0**d, sprintf('%g', 2 * 10.0**d) 2 * 10.0**d, sprintf('%g', 5 * 10.0**d) 5 * 10.0**d)
set grid
stats data using 3 nooutput
set yrange [100 * STATS_min / 1.12 : 100 * STATS_max * 1.05]
spread = STATS_max / STATS_min
if (spread < 12) { set for [d=-4:2] ytics add (sprintf('%g', 3 * 10.0**d) 3 * 10.0**d, sprintf('%g', 7 * 10.0**d) 7 * 10.0**d, sprintf('%g', 1.5 * 10.0**d) 1.5 * 10.0**d) }
set mytics 1
lost(g) = (column(1) == g && column(4) == 0 ? 100 * column(3) : NaN)
best(x) = (column(4) == 1 ? x : NaN)

plot for [g=1:groups] data using ($2 / 60):(lost(g)) with lines linetype g linewidth 2 title labels[g], \
     data using (best($2 / 60)):(best(100 * $3)) with points pointtype 6 pointsize 1.5 linecolor rgb 'black' title 'best interval', \
     data using (text || groups > 3 ? NaN : best($2 / 60)):(best(100 * $3)):(sprintf('%s: %.2g %%', duration($2), 100 * $3)) with labels center offset 0,(narrow ? 5 : 2.8) font ',12' notitle
