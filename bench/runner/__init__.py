"""The benchmark runner. Python's standard library and nothing else.

    tools      builds and installs what takes part
    servers    private servers, fresh for every measurement
    entrants   who takes part, and how each is asked
    figures    what is measured, of whom, with how much load
    measure    runs it, in alternating order
    report     results, table, README
    plot       pictures
"""
