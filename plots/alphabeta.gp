# alphabeta.gp - where does latency end and bandwidth begin, and does the fit hold?
# Columns: 1 group, 2 kind (1 sample, 2 fit, 3 model, 4 switch of the model, 5 where the fit takes twice the time of the smallest size), 3 size
# in bytes, 4 time in s, 5 error of the fit and 6 of the model at a sample in %, 7 piece of the fit or what the library switches to.
# Two panels: times, and residuals. Written to standard output.

kind(k, c) = (column(2) == k ? column(c) : NaN)
us(k) = kind(k, 4) * 1e6
piece(p) = (column(2) == 2 && int(column(7)) == p ? column(4) * 1e6 : NaN)
switched(here) = (column(2) == 4 && here ? strcol(7) : '') # to the left of a switch, where the rising curve leaves room
set logscale x 2
set logscale y 10
set xlabel 'message size (bytes)'
bytes(i) = i < 10 ? sprintf('%d B', 2**i) : i < 20 ? sprintf('%d KiB', 2**(i - 10)) : i < 30 ? sprintf('%d MiB', 2**(i - 20)) \
           : sprintf('%d GiB', 2**(i - 30))
size_of(b) = (b < 1024 ? sprintf('%.3g B', b) : b < 1048576 ? sprintf('%.3g KiB', b / 1024) : sprintf('%.3g MiB', b / 1048576))
if (text) { set format x '%.0b%B' } else { set xtics ('' 1); do for [i=5:50:5] { set xtics add ('' 2.**i) } }
set ylabel 'time (µs)'

if (text) {
    set key maxrows groups + 1
    plot for [g=1:groups] data index g-1 using 3:(us(3)) with dots linetype -1 title (g == 1 ? 'model' : ''), \
         for [g=1:groups] data index g-1 using 3:(us(2)) with lines linetype g title '', \
         for [g=1:groups] data index g-1 using 3:(us(1)) with points linetype g title labels[g].': '.notes[g]
} else {
    # ends of the fit's pieces, of the first group; the last end is that of the data
    array E[16]
    ends = 0
    ended(k, b, p) = (k == 2 && p >= 1 && p <= 16 ? (ends = p > ends ? p : ends, E[int(p)] = b) : 0, 0)
    stats data index 0 using (ended($2, $3, int(column(7)))) nooutput
    # the widest residuals decide on the lower axis, up to 50 %
    low = 0
    high = 0
    reach(v) = (v == v ? (low = v < low ? v : low, high = v > high ? v : high) : 0, 0)
    stats data using (reach(kind(1, 5)), reach(kind(1, 6))) nooutput
    step = (high - low > 60 ? 50 : high - low > 20 ? 20 : high - low > 8 ? 5 : 2)
    low = (low < -50 ? -50 : step * floor(low / step))
    high = (high > 50 ? 50 : step * ceil(high / step))
    if (high - low < 2 * step) { high = high + step }

    set multiplot
    set lmargin 11
    set rmargin 3
    set origin 0, 0.36
    set size 1, 0.64
    unset xlabel
    set format y '%.0f'
    set ytics ()
    do for [e=-1:8] { set ytics add (10.**e); set ytics add (2 * 10.**e); set ytics add (5 * 10.**e) }
    set offsets 0, 0, graph 0.08, graph 0.1
    do for [e=1:ends - 1] { set arrow from E[e], graph 0 to E[e], graph 1 nohead back linecolor rgb '#AAAAAA' dashtype (2,4) linewidth 1 }
    unset key
    key_font = (narrow ? ',10' : ',13')
    set key notitle inside top left vertical maxrows 12 samplen 2 spacing 1.05 font key_font
    plot for [g=1:groups] for [p=1:8] data index g-1 using 3:(piece(p)) with lines linetype g dashtype 1 linewidth 1.6, \
         for [g=1:groups] data index g-1 using 3:(us(3)) with lines linecolor rgb (groups == 1 ? black : 0x444444) dashtype (2,3) linewidth 1.4, \
         for [g=1:groups] data index g-1 using 3:(us(1)) with points linetype g pointtype 6 pointsize 1 linewidth 1.4 \
             title labels[g].(groups == 1 ? '' : ': '.notes[g]), \
         NaN with points pointtype -1 linetype 1 title (groups == 1 ? '   '.notes[1] : ''), \
         for [g=1:groups] data index g-1 using 3:(us(4)) with points linetype g pointtype 2 pointsize 1.3 linewidth 1.4, \
         for [g=1:groups] data index g-1 using 3:(us(4)):(switched($3 < 256)) with labels left offset 0.4,0.9 font ',12' textcolor linetype g, \
         for [g=1:groups] data index g-1 using 3:(us(4)):(switched($3 >= 256)) with labels right offset -0.6,0.7 font ',12' textcolor linetype g, \
         for [g=1:groups] data index g-1 using 3:(us(5)) with points linetype g pointtype 3 pointsize 1.6 linewidth 1.4, \
         for [g=1:(groups == 1 ? 1 : 0)] data index g-1 using 3:(us(5)):(column(2) == 5 ? 'twice the latency: '.size_of($3) : '') with labels right \
             offset -1.6,0.5 font ',12' textcolor linetype g, \
         NaN with points linecolor rgb black pointtype 3 title (groups == 1 ? '' : 'the fit takes twice the latency'), \
         NaN with points linecolor rgb black pointtype 2 title 'algorithm switch of the library, as modelled', \
         NaN with lines linecolor rgb '#AAAAAA' dashtype (2,4) linewidth 1 title (groups == 1 ? 'ends of the pieces of the fit' : 'ends of the pieces of the first fit')
    set origin 0, 0
    set size 1, 0.4
    unset label 90
    unset logscale y
    set xlabel 'message size'
    do for [i=0:50:5] { set xtics add (bytes(i) 2.**i) }
    set ylabel 'residual (%)'
    set format y '%.0f'
    set yrange [low - 0.1 * (high - low) : high + 0.35 * (high - low)] # the key above the curves
    set ytics low, step, high
    set key notitle inside top right horizontal maxrows 1 font ',13'
    set bmargin 4
    set tmargin 0.5
    set offsets 0, 0, 0, 0
    set arrow from graph 0, first 0 to graph 1, first 0 nohead linecolor rgb black linewidth 1
    clip(v) = v > 50 ? 50 : v < -50 ? -50 : v
    plot for [g=1:groups] data index g-1 using 3:(clip(kind(1, 5))) with linespoints linetype g dashtype 1 pointtype 2 linewidth 1.4 pointsize 0.6, \
         for [g=1:groups] data index g-1 using 3:(clip(kind(1, 6))) with linespoints linetype g dashtype (2,4) linewidth 1.4 pointtype 8 pointsize 0.7, \
         NaN with linespoints linetype (groups == 1 ? 1 : -1) linewidth 1.4 dashtype 1 pointtype 2 pointsize 0.6 title 'fit', \
         NaN with linespoints linetype (groups == 1 ? 1 : -1) linewidth 1.4 dashtype (2,4) pointtype 8 pointsize 0.7 title 'model'
    unset multiplot
}
