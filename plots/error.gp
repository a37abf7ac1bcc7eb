# error.gp - how far are predictions from measurements, and to which side?
# Columns: 1 group, 2 label, 3 offset from the middle of the group, 4 error, 5 its mean in the group, 6 first quartile, 7 median,
# 8 third quartile; 4 to 8 in %: 100 (predicted - measured) / measured. Groups from top to bottom. Written to standard output.

set xlabel 'signed error of the prediction (%)'
set yrange [groups + 0.7 : 0.3]
unset ytics
longest = 0
many = text || groups > 12 # no room for second lines
letters = groups > 12 ? ',11' : ',13'
do for [g=1:groups] {
    name = strlen(labels[g]) > 48 ? labels[g][1:47].'...' : labels[g]
    wide = many || strlen(name) > strlen(notes[g]) ? strlen(name) : strlen(notes[g])
    longest = wide > longest ? wide : longest
    if (many) { set label name at graph 0, first g right offset -1,0 font letters } \
    else { set label name."\n".notes[g] at graph 0, first g right offset -1,0.4 font ',13' }
}
set lmargin (text ? longest + 2 : (many ? 0.74 : 0.75) * longest + 3)
set grid noytics
set key horizontal maxrows (narrow ? 2 : 1)
set arrow from 0, graph 0 to 0, graph 1 nohead linecolor rgb black linewidth 1.5
set offsets graph 0.02, graph 0.02, 0, 0
half = 0.38

if (text) {
    plot data using 4:1 with points pointtype 1 title 'one row', \
         for [g=1:groups] data index g-1 using 5:1 every ::0::0 with points pointtype 13 title (g == 1 ? 'mean' : '')
} else {
    plot for [g=1:groups] data index g-1 using 7:1:6:8:($1-half):($1+half) every ::0::0 with boxxyerror \
             fillstyle solid 1 border linecolor rgb black linecolor rgb 0xC7DDEB dashtype 1 linewidth 0.8 title (g == 1 ? 'box: middle 50 %' : ''), \
         for [g=1:groups] data index g-1 using 7:($1-half):(0):(2*half) every ::0::0 with vectors nohead linecolor rgb black \
             dashtype 1 linewidth 2 title (g == 1 ? 'median' : ''), \
         data using 4:($1+$3) with points linecolor rgb '#0072B2' pointtype 6 pointsize 0.8 title 'one row', \
         for [g=1:groups] data index g-1 using 5:1 every ::0::0 with points linecolor rgb 'white' pointtype 13 pointsize 3.4, \
         for [g=1:groups] data index g-1 using 5:1 every ::0::0 with points linecolor rgb '#D55E00' pointtype 13 pointsize 2.2 \
             title (g == 1 ? 'mean' : '')
}
