package main

import (
	"bytes"
	"fmt"
	"image/color"
	"math"
	"os"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/font"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgsvg"
)

// chart is one plot: curves over a common axis, black on white, told apart by their marks and dashes.
type chart struct {
	title, x, y string
	log         bool // the y axis
	curves      []curve
}

// curve is points in the order of x. On a log axis, those at or below 0 are left out.
type curve struct {
	name string
	x, y []float64
}

// The plot, as wide as a page of text. The legend stands below it, where it hides nothing and has room for long names.
const (
	plotWidth  = 7 * vg.Inch
	plotHeight = 4 * vg.Inch
)

var (
	shapes = []draw.GlyphDrawer{draw.CircleGlyph{}, draw.SquareGlyph{}, draw.TriangleGlyph{}, draw.CrossGlyph{}, draw.RingGlyph{}, draw.BoxGlyph{}, draw.PyramidGlyph{}, draw.PlusGlyph{}}
	dashes = [][]vg.Length{nil, {6, 3}, {2, 2}, {8, 3, 2, 3}, {12, 4}}
)

// write makes the file. The same chart gives the same bytes.
func (c *chart) write(file string) error {
	text, err := c.svg()
	if err != nil {
		return fmt.Errorf("%s: %w", file, err)
	}
	return os.WriteFile(file, text, 0o644)
}

func (c *chart) svg() ([]byte, error) {
	p := plot.New()
	p.Title.Text, p.X.Label.Text, p.Y.Label.Text = c.title, c.x, c.y
	p.Title.Padding = vg.Points(6)
	sans := font.Font{Typeface: "Liberation", Variant: "Sans"}
	for _, f := range []*font.Font{&p.Title.TextStyle.Font, &p.X.Label.TextStyle.Font, &p.Y.Label.TextStyle.Font, &p.X.Tick.Label.Font, &p.Y.Tick.Label.Font, &p.Legend.TextStyle.Font} {
		size := f.Size
		*f = sans
		f.Size = size
	}
	if c.log {
		p.Y.Scale, p.Y.Tick.Marker = plot.LogScale{}, plot.TickerFunc(logTicks)
	} else {
		p.Y.Min = 0
	}
	grid := plotter.NewGrid()
	grid.Vertical.Width, grid.Horizontal.Color = 0, color.Gray{220}
	p.Add(grid)
	for i, of := range c.curves {
		if err := c.add(p, i, of); err != nil {
			return nil, err
		}
	}
	if c.log {
		p.Y.Min, p.Y.Max = p.Y.Min/1.2, p.Y.Max*1.2 // room above 0, for one value too
	}
	p.X.Padding, p.Y.Padding = 0, 0
	p.Legend.Padding, p.Legend.ThumbnailWidth = vg.Points(2), vg.Points(40)
	return drawn(p)
}

// add draws one curve. The first is the one that the plot is about, and thicker.
func (c *chart) add(p *plot.Plot, i int, of curve) error {
	var points plotter.XYs
	for k, x := range of.x {
		if !c.log || of.y[k] > 0 {
			points = append(points, plotter.XY{X: x, Y: of.y[k]})
		}
	}
	if len(points) == 0 {
		return nil
	}
	line, dots, err := plotter.NewLinePoints(points)
	if err != nil {
		return err
	}
	line.Width, line.Dashes = vg.Points(1), dashes[i%len(dashes)]
	if i == 0 {
		line.Width = vg.Points(2)
	}
	dots.Shape, dots.Radius = shapes[i%len(shapes)], vg.Points(3)
	p.Add(line, dots)
	p.Legend.Add(of.name, line, dots)
	return nil
}

// drawn is the plot with its legend, which is as high as it has to be.
func drawn(p *plot.Plot) ([]byte, error) {
	legend := p.Legend
	p.Legend = plot.NewLegend()
	below := legend.Rectangle(draw.New(vgsvg.New(plotWidth, plotHeight))).Size().Y + vg.Points(8)
	canvas := vgsvg.New(plotWidth, plotHeight+below)
	all := draw.New(canvas)
	all.SetColor(color.White)
	all.Fill(all.Rectangle.Path())
	inner := draw.Crop(all, vg.Points(6), vg.Points(-12), vg.Points(6), vg.Points(-6))
	p.Draw(draw.Crop(inner, 0, 0, below, 0))
	legend.Left = true
	legend.Draw(draw.Crop(inner, vg.Points(40), 0, 0, 0))
	var out bytes.Buffer
	_, err := canvas.WriteTo(&out)
	// Where that font is missing, one of the same widths is not.
	return bytes.ReplaceAll(out.Bytes(), []byte("font-family:Liberation Sans;"), []byte("font-family:Liberation Sans,Arial,Helvetica,sans-serif;")), err
}

// logTicks are 1, 2 and 5 of each decade with a label, or its 1 alone over more than three decades.
func logTicks(low, high float64) (ticks []plot.Tick) {
	wide := high/low > 1000
	for decade := math.Floor(math.Log10(low)); decade <= math.Log10(high); decade++ {
		for k := 1; k <= 9; k++ {
			t := plot.Tick{Value: float64(k) * math.Pow(10, decade)}
			if k == 1 || !wide && (k == 2 || k == 5) {
				t.Label = fmt.Sprintf("%g", roundTo3(t.Value))
			}
			if t.Value >= low && t.Value <= high {
				ticks = append(ticks, t)
			}
		}
	}
	return ticks
}

// roundTo3 is x with three digits, so that 0.30000000000000004 prints as 0.3.
func roundTo3(x float64) float64 {
	scale := math.Pow(10, 2-math.Floor(math.Log10(x)))
	return math.Round(x*scale) / scale
}
