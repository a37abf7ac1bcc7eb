# style.gp - what all figures share: terminal, fonts, colours, line types. Loaded before the figure's own script.
#
# Set by the program (gnuplot -e): data (name of the data block), format (png, svg, pdf, eps or terminal), columns and lines (size of
# the text terminal), wide and high (of png and svg, in pixels), color (1: colours in the text terminal), title, subtitle, groups (how many), labels and notes (arrays of
# their names and of second lines under them).
# Colours: Okabe and Ito, safe for colour-blind readers; line types and point shapes distinguish groups in grey.

set encoding utf8
set datafile separator comma
set datafile commentschars ''
set datafile missing 'NaN'

text = format eq 'terminal'
if (format eq 'png') { set terminal pngcairo size 2*wide,2*high font 'sans,13' fontscale 2 pointscale 2 noenhanced linewidth 3 }
if (format eq 'svg') { set terminal svg size wide,high font 'sans-serif,15' noenhanced background 'white' linewidth 1.5 }
if (format eq 'eps') { set terminal epscairo size 24cm,16cm font 'sans,14' noenhanced linewidth 1.5 }
if (format eq 'pdf') { set terminal pdfcairo size 24cm,16cm font 'sans,14' noenhanced linewidth 1.5 }
if (text && color) { set terminal dumb size columns,lines noenhanced ansi }
if (text && !color) { set terminal dumb size columns,lines noenhanced mono }
set termoption noenhanced

# blue, vermillion, green, purple, orange, sky blue; shapes: filled circle, square, triangle, diamond, open circle, open square
set linetype 1 linecolor rgb '#0072B2' pointtype 7 dashtype 1 linewidth 2
set linetype 2 linecolor rgb '#D55E00' pointtype 5 dashtype (12,4) linewidth 2
set linetype 3 linecolor rgb '#009E73' pointtype 9 dashtype (3,3) linewidth 2
set linetype 4 linecolor rgb '#CC79A7' pointtype 13 dashtype (12,4,3,4) linewidth 2
set linetype 5 linecolor rgb '#E69F00' pointtype 6 dashtype (18,4) linewidth 2
set linetype 6 linecolor rgb '#56B4E9' pointtype 4 dashtype (6,3,2,3,2,3) linewidth 2
band_opacity = groups > 3 ? 0.09 : 0.18
grey = 0x8C8C8C
black = 0x000000

heading = (subtitle eq '' ? title : title."\n".subtitle)
# A heading as wide as the picture at most: a long one in smaller letters.
longest_line = strlen(title) > strlen(subtitle) ? strlen(title) : strlen(subtitle)
heading_size(length) = (length > 0 && !text && format ne 'pdf' && wide / (format eq 'png' ? 9.2 : 8.1) < length ? \
    floor((format eq 'png' ? 13. : 15.) * wide / (format eq 'png' ? 9.2 : 8.1) / length) : format eq 'svg' ? 15 : 13)
heading_font = sprintf(',%d', heading_size(longest_line) < 7 ? 7 : heading_size(longest_line))
if (text) { set title heading } else { set title heading font heading_font }
# For wide left margins: in the middle of the picture, not of the axes.
centred = 'unset title; set tmargin 4.2; set label 90 heading at screen 0.5,1 center offset 0,-1.6 font heading_font'
set border 3 linewidth 0.8
set tics nomirror out
if (text) { set border 15; set tics in } else { set grid linecolor rgb '#DDDDDD' linewidth 0.6 dashtype 1 }
set autoscale fix
narrow = !text && format ne 'pdf' && wide < 700 # a small screen: the key in one column
if (!text) { set xlabel offset 0,(format eq 'svg' ? 0.8 : 0.4) }
set key outside bottom center vertical Left reverse samplen 3 spacing 1.1 noautotitle maxrows (narrow ? 14 : 5)
if (!text) { set format '%.10g' } # gnuplot's own leaves room for a sign: labels next to their tics
if (!text) { set key title ' ' font ',8' } # keeps the key away from the axis' title
if (text) {
    # letters A to F for points; a line holds less of the key
    set key maxrows 9 samplen 4
    do for [l=1:6] { set linetype l pointtype l }
}
