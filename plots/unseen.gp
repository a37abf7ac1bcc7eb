# unseen.gp - how wrong is a prediction for a machine or framework that no fit has seen?
# Columns: 1 group, 2 its name, 3 rows, absolute errors in %: 4 mean, 5 median, 6 90th percentile, 7 mean of the same rows in-sample, 8 bias.
# Also set: mean_pct over groups. Groups from top to bottom, best first. Written to standard output.

set xlabel 'absolute error (%)'
stats data using 6 nooutput
set xrange [0 : STATS_max > 100 ? 100 : 1.05 * STATS_max]
set yrange [groups + 0.7 : 0.3]
unset ytics
longest = 0
most = (text ? 34 : narrow ? 30 : 56)
do for [g=1:groups] {
    name = strlen(labels[g]) > most ? labels[g][1:most - 3].'...' : labels[g]
    longest = strlen(name) > longest ? strlen(name) : longest
    set label name at graph 0, first g right offset -1,0 font (text ? '' : ',12')
}
set lmargin (text ? longest + 2 : 0.72 * longest + 3)
set grid noytics
set key horizontal maxrows 2
clip(v) = v > 100 ? 100 : v

if (text) {
    plot data using (clip($6)):1 with points pointtype 3 title '90th percentile', data using 7:1 with points pointtype 2 title 'in-sample mean', \
         data using 4:1 with points pointtype 1 title 'mean'
} else {
    unset title
    set tmargin 4
    set label 90 heading at screen 0.5,1 center offset 0,-1.6
    set arrow from mean_pct, graph 0 to mean_pct, graph 1 nohead linecolor rgb '#D55E00' dashtype (4,4) linewidth 1
    plot data using 5:1:(clip($6) - $5):(0) with vectors nohead linecolor rgb '#9AC4DF' dashtype 1 linewidth 4 title 'median to 90th percentile', \
         data using 5:1 with points linecolor rgb '#0072B2' pointtype 7 pointsize 0.7 title 'median', \
         data using 7:1 with points linecolor rgb black pointtype 6 pointsize 0.9 linewidth 1.2 title 'mean in-sample', \
         data using 4:1 with points linecolor rgb '#D55E00' pointtype 13 pointsize 1 title 'mean, never seen'
}
