package otlp

import (
	collector "go.opentelemetry.io/proto/otlp/collector/metrics/v1"
	metrics "go.opentelemetry.io/proto/otlp/metrics/v1"
)

// addMetrics adds an event $otel_metric for each data point.
func (b *batch) addMetrics(req *collector.ExportMetricsServiceRequest) {
	for _, resource := range req.GetResourceMetrics() {
		attributes := properties{}
		attributes.addAttributes(resource.GetResource().GetAttributes())
		for _, scope := range resource.GetScopeMetrics() {
			for _, metric := range scope.GetMetrics() {
				shared := b.from(attributes)
				if shared == nil {
					return
				}
				shared.set("$scope_name", scope.GetScope().GetName())
				shared.set("$metric_name", metric.GetName())
				shared.set("$metric_unit", metric.GetUnit())
				b.addMetric(metric, shared)
			}
		}
	}
}

func (b *batch) addMetric(metric *metrics.Metric, shared properties) {
	switch data := metric.GetData().(type) {
	case *metrics.Metric_Gauge:
		b.addNumbers("gauge", data.Gauge.GetDataPoints(), shared)
	case *metrics.Metric_Sum:
		shared.set("$metric_temporality", enumName(data.Sum.GetAggregationTemporality().String(), "AGGREGATION_TEMPORALITY_"))
		shared["$metric_monotonic"] = data.Sum.GetIsMonotonic()
		b.addNumbers("sum", data.Sum.GetDataPoints(), shared)
	case *metrics.Metric_Histogram:
		shared.set("$metric_temporality", enumName(data.Histogram.GetAggregationTemporality().String(), "AGGREGATION_TEMPORALITY_"))
		for _, d := range data.Histogram.GetDataPoints() {
			p := b.with(shared, "histogram")
			if p == nil {
				return
			}
			p.addAttributes(d.GetAttributes())
			p.addCount(d.GetCount(), d.GetSum(), d.Min, d.Max)
			p["$metric_bounds"], p["$metric_buckets"] = numbers(d.GetExplicitBounds()), d.GetBucketCounts()
			b.add("$otel_metric", p, d.GetTimeUnixNano(), "", "")
		}
	case *metrics.Metric_ExponentialHistogram:
		shared.set("$metric_temporality", enumName(data.ExponentialHistogram.GetAggregationTemporality().String(), "AGGREGATION_TEMPORALITY_"))
		for _, d := range data.ExponentialHistogram.GetDataPoints() {
			p := b.with(shared, "exponential_histogram")
			if p == nil {
				return
			}
			p.addAttributes(d.GetAttributes())
			p.addCount(d.GetCount(), d.GetSum(), d.Min, d.Max)
			p["$metric_scale"], p["$metric_zero_count"] = d.GetScale(), d.GetZeroCount()
			p["$metric_positive"], p["$metric_negative"] = buckets(d.GetPositive()), buckets(d.GetNegative())
			b.add("$otel_metric", p, d.GetTimeUnixNano(), "", "")
		}
	case *metrics.Metric_Summary:
		for _, d := range data.Summary.GetDataPoints() {
			p := b.with(shared, "summary")
			if p == nil {
				return
			}
			p.addAttributes(d.GetAttributes())
			p.addCount(d.GetCount(), d.GetSum(), nil, nil)
			quantiles := make([]any, 0, len(d.GetQuantileValues()))
			for _, q := range d.GetQuantileValues() {
				quantiles = append(quantiles, properties{"quantile": number(q.GetQuantile()), "value": number(q.GetValue())})
			}
			p["$metric_quantiles"] = quantiles
			b.add("$otel_metric", p, d.GetTimeUnixNano(), "", "")
		}
	}
}

func (b *batch) addNumbers(kind string, points []*metrics.NumberDataPoint, shared properties) {
	for _, d := range points {
		p := b.with(shared, kind)
		if p == nil {
			return
		}
		p.addAttributes(d.GetAttributes())
		switch v := d.GetValue().(type) {
		case *metrics.NumberDataPoint_AsInt:
			p["$metric_value"] = v.AsInt
		case *metrics.NumberDataPoint_AsDouble:
			p["$metric_value"] = number(v.AsDouble)
		}
		b.add("$otel_metric", p, d.GetTimeUnixNano(), "", "")
	}
}

// with returns a copy of shared for a data point of a kind, nil after an error.
func (b *batch) with(shared properties, kind string) properties {
	p := b.from(shared)
	if p != nil {
		p["$metric_type"] = kind
	}
	return p
}

func (p properties) addCount(count uint64, sum float64, least, most *float64) {
	p["$metric_count"], p["$metric_sum"] = count, number(sum)
	if least != nil {
		p["$metric_min"] = number(*least)
	}
	if most != nil {
		p["$metric_max"] = number(*most)
	}
}

func buckets(b *metrics.ExponentialHistogramDataPoint_Buckets) properties {
	return properties{"offset": b.GetOffset(), "counts": b.GetBucketCounts()}
}

func numbers(list []float64) []any {
	out := make([]any, len(list))
	for i, f := range list {
		out[i] = number(f)
	}
	return out
}
