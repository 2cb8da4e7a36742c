"""The benchmark runner. Python's standard library and nothing else.

    provenance commit, machine and versions of a result
    pins       the versions of the peers
    tools      builds and installs what takes part
    servers    private servers and empty stores, fresh for every measurement
    prepared   stores that are filled once for many measurements
    asking     one who takes part, and what asking one comes to
    ours, workers, floors, peers, pinned, restart, reading, held, parked    how each is asked
    search     the highest rate that something keeps up with
    cases      a question to all of them, and how much is asked
    figures    what is measured, of whom
    metrics    the numbers that are compared
    measure    runs it, in alternating order
    against    an old and a new build in turn
    cpu        processor time
    report     results and long tables
    plot       pictures
    lookup     single numbers of the results
    published, goals, tables    what pages quote of them
    pages      writes the pages, and compares them
"""
