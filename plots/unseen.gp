# unseen.gp - how wrong is a prediction for a machine or framework that no fit has seen, and to which side?
# Columns: 1 group, 2 its name, 3 rows, absolute errors in %: 4 mean, 5 median, 6 90th percentile, 7 mean of the same rows in-sample, 8 bias.
# Also set: mean_pct over groups, what (they are). notes: names. Groups from top to bottom, best first. Errors beyond the axis are written at its end.
# Written to standard output.

set xlabel 'absolute error (%)'
# The axis ends where nine of ten groups do, unless the others are near.
array ends[groups]
count = 0
end_of(mean, p90, rows) = (rows >= 5 && p90 > mean ? p90 : mean)
keep(v) = (count = count + 1, ends[count] = v, 0)
stats data using (keep(end_of($4, $6, $3))) nooutput
do for [a=1:groups] { do for [b=a+1:groups] { if (ends[b] < ends[a]) { swap = ends[a]; ends[a] = ends[b]; ends[b] = swap } } }
usual = ends[int(ceil(0.9 * groups))]
most = (ends[groups] > 1.6 * usual && usual > 0 ? 1.15 * usual : 1.05 * ends[groups])
most = (most > 0 ? most : 1)
clip(v) = (v > most ? most : v)

set xrange [0 : most]
set yrange [groups + 0.7 : 0.3]
unset ytics
longest = 0
letters = (text ? 34 : room_for(narrow ? 0.3 : 0.36, 12))
do for [g=1:groups] {
    name = (text ? short(labels[g], letters) : short(notes[g], letters))
    longest = strlen(name) > longest ? strlen(name) : longest
    set label g name at graph 0, first g right offset -1,0 font (text ? '' : ',12')
}
set lmargin (text ? longest + 2 : margin_for(longest, 12))
set grid noytics
set key horizontal maxrows 2

if (text) {
    plot data using (clip($6)):1 with points pointtype 3 title '90th percentile', data using 7:1 with points pointtype 2 title 'in-sample mean', \
         data using 4:1 with points pointtype 1 title 'mean'
} else {
    set tmargin 3 + 1.02 * count_lines(heading)
    set rmargin (narrow ? 21 : 25)
    set key horizontal maxrows (narrow ? 6 : 3) font ',12'
    # numbers next to the rows: runs, mean, in-sample, bias
    array heads[4] = ['runs', 'out', 'seen', 'bias']
    column_at(c) = (narrow ? 5. : 6.) * c - (c == 1 ? 0.5 : 0)
    do for [c=1:4] { set label 100 + c heads[c] at graph 1, graph 1 right offset column_at(c),0.8 font ',12' }
    set arrow from mean_pct, graph 0 to mean_pct, graph 1 nohead back linecolor rgb '#D55E00' dashtype (4,4) linewidth 1
    if (narrow) { set xtics most > 40 ? 20 : 10 }
    beyond(v) = (v > most ? sprintf('%.0f', v) : '')
    plot data using ($3 >= 5 ? clip($5) : NaN):1:(clip($6) - clip($5)):(0) with vectors nohead linecolor rgb '#9AC4DF' dashtype 1 linewidth 4 \
             title (narrow ? 'median to 90th percentile' : 'median to 90th percentile (of 5 runs or more)'), \
         data using (clip($7)):1:(clip($4) - clip($7)):(0) with vectors nohead linecolor rgb black dashtype 1 linewidth 1, \
         data using ($5 <= most ? $5 : NaN):1 with points linecolor rgb '#0072B2' pointtype 7 pointsize 0.5 title 'median', \
         data using ($4 <= most ? $4 : NaN):1 with points linecolor rgb '#D55E00' pointtype 13 pointsize 0.9 title 'mean, held out of the fit', \
         data using ($7 <= most ? $7 : NaN):1 with points linecolor rgb black pointtype 6 pointsize 0.7 linewidth 1.2 title 'mean, seen by the fit (in-sample)', \
         NaN with lines linecolor rgb '#D55E00' dashtype (4,4) linewidth 1 title 'mean over '.what, \
         data using ($4 > most ? 0.94 * most : NaN):1:(0.06 * most):(0) with vectors head filled size graph 0.012,25 linecolor rgb '#D55E00' \
             dashtype 1 linewidth 1.5, \
         data using ($4 > most ? 0.93 * most : NaN):1:(beyond($4)) with labels right font ',12' textcolor rgb '#D55E00', \
         data using (most):1:(sprintf('%d', $3)) with labels right offset column_at(1),0 font ',12', \
         data using (most):1:(sprintf('%.1f', $4)) with labels right offset column_at(2),0 font ',12', \
         data using (most):1:(sprintf('%.1f', $7)) with labels right offset column_at(3),0 font ',12', \
         data using (most):1:(sprintf('%s%.1f', $8 < 0 ? '−' : '+', abs($8))) with labels right offset column_at(4),0 font ',12'
}
