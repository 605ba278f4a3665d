"""The roofline."""

import numpy as np
import torch

from specdec_lab import roofline
from specdec_lab.course.mutants import right, wrong


@wrong("the peak does not limit", says="no machine computes faster than its peak")
def no_peak(intensity, peak_flops, bandwidth):
    return intensity * bandwidth


@wrong("the bandwidth does not limit", says="data that has not arrived")
def no_bandwidth(intensity, peak_flops, bandwidth):
    return peak_flops


@wrong("the larger of the two", says="data that has not arrived")
def the_larger(intensity, peak_flops, bandwidth):
    return max(peak_flops, intensity * bandwidth)


@wrong("divides by the intensity", says="FLOPs per byte times bytes per second")
def divides(intensity, peak_flops, bandwidth):
    return min(peak_flops, bandwidth / intensity)


@wrong("compares operations with bytes", says="How many operations does each byte")
def without_intensity(intensity, peak_flops, bandwidth):
    return min(peak_flops, bandwidth)


@wrong("one after the other", says="moving and computing overlap")
def adds_up(intensity, peak_flops, bandwidth):
    seconds = 1 / peak_flops + 1 / (intensity * bandwidth)
    return 1 / seconds


@wrong("a share of the peak", says="a share of the peak")
def share(intensity, peak_flops, bandwidth):
    return min(1.0, intensity / (peak_flops / bandwidth))


@wrong("the seconds that an operation takes", says="upside down")
def seconds(intensity, peak_flops, bandwidth):
    return max(1 / peak_flops, 1 / (intensity * bandwidth))


@wrong("the words of the answer", says="type str, expected a number")
def in_words(intensity, peak_flops, bandwidth):
    return "memory-bound" if intensity < peak_flops / bandwidth else "compute-bound"


@wrong("calls the library", says="calls the library's `attainable_flops`")
def calls_the_library(intensity, peak_flops, bandwidth):
    return roofline.attainable_flops(intensity, peak_flops, bandwidth)


@right("by the ridge")
def by_ridge(intensity, peak_flops, bandwidth):
    ridge = peak_flops / bandwidth
    if intensity >= ridge:
        return peak_flops
    return peak_flops * intensity / ridge


@right("by the time of one byte")
def by_time(intensity, peak_flops, bandwidth):
    move, compute = 1 / bandwidth, intensity / peak_flops
    return intensity / max(move, compute)


@right("torch")
def with_torch(intensity, peak_flops, bandwidth):
    return torch.minimum(
        torch.tensor(peak_flops, dtype=torch.float64),
        torch.tensor(intensity * bandwidth, dtype=torch.float64),
    )


@right("numpy")
def with_numpy(intensity, peak_flops, bandwidth):
    return np.minimum(peak_flops, np.float64(intensity) * bandwidth)
