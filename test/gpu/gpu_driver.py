"""Kernels on a card: a folder of gpu_kernels' output, loaded through libcuda and launched on PyTorch's stream.

    kernel = Kernel("build/gpu/softmax_f16_256x1024")    # .json and .cubin or .ptx
    kernel.bind([x, y])                                  # tensors, by the numbers of the buffers
    kernel.launch()
"""
import statistics

import torch

import cuda_launch


class Kernel(cuda_launch.Kernel):
    def __init__(self, stem, overlap=True):
        torch.cuda.init()
        torch.zeros(1, device="cuda")
        super().__init__(stem, overlap)

    def bind(self, buffers):
        super().bind([buffer.data_ptr() for buffer in buffers])

    def launch(self):
        super().launch(torch.cuda.current_stream().cuda_stream)


class Graph:
    """|launches| of a run() as a CUDA graph."""

    def __init__(self, run, launches):
        self.launches, self.stream = launches, torch.cuda.Stream()
        with torch.cuda.stream(self.stream):
            run()
            self.graph = torch.cuda.CUDAGraph()
            with torch.cuda.graph(self.graph, stream=self.stream):
                for _ in range(launches):
                    run()

    def time(self):
        """Microseconds of one run(), of a replay behind another one."""
        start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        with torch.cuda.stream(self.stream):
            self.graph.replay()
            start.record()
            self.graph.replay()
            end.record()
            end.synchronize()
        return start.elapsed_time(end) * 1e3 / self.launches


def replay_time(run, launches, replays=15):
    """Microseconds of one run(), median over replays of a graph with |launches| of them."""
    graph = Graph(run, launches)
    return statistics.median(graph.time() for _ in range(replays))
