# alphabeta.gp - where does latency end and bandwidth begin, and does the fit hold?
# Columns: 1 group, 2 kind (1 sample, 2 fit, 3 model, 4 switch of the model), 3 size in bytes, 4 time in s, 5 error of the fit and
# 6 of the model at a sample in %, 7 what the library switches to. Two panels: times, and residuals. Written to standard output.

kind(k, c) = (column(2) == k ? column(c) : NaN)
us(k) = kind(k, 4) * 1e6
switched(here) = (column(2) == 4 && here ? strcol(7) : '') # to the left of a switch, where the rising curve leaves room
set logscale x 2
set logscale y 10
set xlabel 'message size (bytes)'
bytes(i) = i < 10 ? sprintf('%d B', 2**i) : i < 20 ? sprintf('%d KiB', 2**(i - 10)) : i < 30 ? sprintf('%d MiB', 2**(i - 20)) \
           : sprintf('%d GiB', 2**(i - 30))
if (text) { set format x '%.0b%B' } else { set xtics ('' 1); do for [i=5:50:5] { set xtics add ('' 2.**i) } }
set ylabel 'time (µs)'

if (text) {
    set key maxrows groups + 1
    plot for [g=1:groups] data index g-1 using 3:(us(3)) with dots linetype -1 title (g == 1 ? 'model' : ''), \
         for [g=1:groups] data index g-1 using 3:(us(2)) with lines linetype g title '', \
         for [g=1:groups] data index g-1 using 3:(us(1)) with points linetype g title labels[g].': '.notes[g]
} else {
    set multiplot
    set lmargin 11
    set rmargin 3
    set origin 0, 0.36
    set size 1, 0.64
    unset xlabel
    set format y '%.0f'
    set offsets 0, 0, graph 0.08, graph 0.04
    unset key
    set key notitle inside top left vertical maxrows 12 samplen 2 spacing 1.05 font ',14'
    plot for [g=1:groups] data index g-1 using 3:(us(3)) with lines linetype g dashtype (2,4) linewidth 1.4, \
         for [g=1:groups] data index g-1 using 3:(us(2)) with lines linetype g dashtype 1, \
         for [g=1:groups] data index g-1 using 3:(us(1)) with points linetype g pointsize 1.3 title labels[g].' ('.notes[g].')', \
         for [g=1:groups] data index g-1 using 3:(us(4)) with points linetype g pointtype 2 pointsize 1.1 linewidth 1, \
         for [g=1:groups] data index g-1 using 3:(us(4)):(switched($3 < 256)) with labels left offset 0.4,0.9 font ',11' textcolor linetype g, \
         for [g=1:groups] data index g-1 using 3:(us(4)):(switched($3 >= 256)) with labels right offset -0.4,0.7 font ',11' textcolor linetype g, \
         NaN with points linecolor rgb black pointtype 2 title 'algorithm switch of the library, as modelled'
    set origin 0, 0
    set size 1, 0.37
    unset title
    unset logscale y
    set xlabel 'message size (bytes)'
    do for [i=0:50:5] { set xtics add (bytes(i) 2.**i) }
    set ylabel 'residual (%)'
    set format y '%.0f'
    set yrange [-50:110] # the key above the curves
    set ytics -50,50,50
    set key notitle inside top right horizontal maxrows 1 font ',13'
    set bmargin 4
    set offsets 0, 0, 0, 0
    set arrow from graph 0, first 0 to graph 1, first 0 nohead linecolor rgb black linewidth 1
    clip(v) = v > 50 ? 50 : v < -50 ? -50 : v
    plot for [g=1:groups] data index g-1 using 3:(clip(kind(1, 5))) with linespoints linetype g dashtype 1 pointsize 1.2, \
         for [g=1:groups] data index g-1 using 3:(clip(kind(1, 6))) with linespoints linetype g dashtype (2,4) linewidth 1.2 pointtype 6 pointsize 0.9, \
         NaN with linespoints linecolor rgb black linewidth 2 dashtype 1 pointtype 7 title 'fit', \
         NaN with linespoints linecolor rgb black linewidth 1.2 dashtype (2,4) pointtype 6 title 'model'
    unset multiplot
}
