"""A call in a process of its own, since compiled code may crash, or not end.

    result, how = apart.call(function, argument, seconds=60)    # (what it gave, ""), or (None, how it ended without)

What it gives has to pickle. |method| is how the process starts, as multiprocessing names it: by "fork" function and
arguments need not pickle. An exception is printed there, and the process ends with 1.
"""

import multiprocessing

EXIT_SECONDS = 10  # to end after it has answered


def send(sender, function, *rest):
    sender.send(function(*rest))


def call(function, *rest, seconds=None, method=None):
    context = multiprocessing.get_context(method)
    receiver, sender = context.Pipe(duplex=False)
    worker = context.Process(target=send, args=(sender, function, *rest))
    worker.start()
    sender.close()
    answered = receiver.poll(seconds)
    try:
        result, how = (receiver.recv(), "") if answered else (None, f"no end after {seconds:g} s")
    except EOFError:
        worker.join()
        result, how = None, f"crash: exit status {worker.exitcode}"
    receiver.close()
    worker.join(EXIT_SECONDS if answered else 0)
    worker.kill()
    worker.join()
    return result, how
