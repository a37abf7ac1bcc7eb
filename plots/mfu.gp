# mfu.gp - how much of the devices' rate does the model use, and how much goes into recomputation?
# Columns: 1 group, 2 label of the bar, 3 its position, 4 MFU, 5 HFU, 6 and 7 ends of the 80 % interval of the MFU; fractions of the
# dense datasheet rate; 11 nodes. Also set: xtitle, slanted (1: long labels). Written to standard output.

set xlabel xtitle
set ylabel 'share of the datasheet rate (%)'
set yrange [0:*]
set boxwidth 0.8
set grid noxtics
if (slanted) { set xtics rotate by 40 right }
set offsets 0.6, 0.6, graph 0.06, 0
eval clusters
set key horizontal maxrows (narrow ? 3 : 1)
percent(c) = 100 * column(c)

if (text) {
    plot data using 3:(percent(5)):xtic(2) with boxes linetype 2 title 'HFU, with recomputation', \
         data using 3:(percent(4)):xtic(2) with boxes linetype 1 title 'MFU'
} else {
    recomputes = 0
    stats data using (recomputes = (column(5) > 1.001 * column(4) ? 1 : recomputes)) nooutput
    plot data using 3:(percent(5)):xtic(clustered ? 11 : 2) with boxes fillstyle pattern 4 border linecolor rgb black linecolor rgb 0xE69F00 dashtype 1 \
             linewidth 0.6 title (recomputes ? 'HFU, with recomputation' : ''), \
         data using 3:(percent(4)):xtic(clustered ? 11 : 2) with boxes fillstyle pattern 3 border linecolor rgb black linecolor rgb 0x0072B2 dashtype 1 \
             linewidth 0.6 title 'MFU', \
         data using 3:(percent(6)):(0):(percent(7) - percent(6)) with vectors nohead linecolor rgb 'white' dashtype 1 linewidth 3.5, \
         data using 3:(percent(6)):(0):(percent(7) - percent(6)) with vectors heads size graph 0.006,90 linecolor rgb black dashtype 1 \
             linewidth 1.4 title '80 % interval of the MFU'
}
