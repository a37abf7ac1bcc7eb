# checkpoint.gp - how often should a job write a checkpoint, and what does that cost in each format?
# Columns: 1 group (format), 2 interval in s, 3 lost share of the time, 4 whether it is the best interval. Written to standard output.

set xlabel 'interval between checkpoints (min)'
set ylabel 'time lost to checkpoints and failures (%)'
set logscale xy
# 1, 2 and 5 of each decade: a curve often spans one or two
set for [d=-3:6] xtics add (sprintf('%g', 10.0**d) 10.0**d, sprintf('%g', 2 * 10.0**d) 2 * 10.0**d, sprintf('%g', 5 * 10.0**d) 5 * 10.0**d)
set for [d=-4:2] ytics add (sprintf('%g', 10.0**d) 10.0**d, sprintf('%g', 2 * 10.0**d) 2 * 10.0**d, sprintf('%g', 5 * 10.0**d) 5 * 10.0**d)
set grid
lost(g) = (column(1) == g && column(4) == 0 ? 100 * column(3) : NaN)
best(x) = (column(4) == 1 ? x : NaN)

plot for [g=1:groups] data using ($2 / 60):(lost(g)) with lines linetype g linewidth 2 title labels[g], \
     data using (best($2 / 60)):(best(100 * $3)) with points pointtype 6 pointsize 1.5 linecolor rgb 'black' title 'best interval'
