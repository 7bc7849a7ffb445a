"""Other machines: the same core runs there and sends what it knows over one connection, the line.

======================  ===============================================================================================
the line                ``ssh`` opens it, ``line`` is it; ``bundle`` is what is sent, ``arrival`` unpacks and starts
                        it there, ``__main__`` picks what it does: a command of ours, ``serve`` or ``transfer``
one screen for all      ``serve`` there (``desk``, ``outbox``, ``channels``, ``calls``), ``link`` here (``session`` is
                        one line, ``reopening`` when the next begins; ``far``, ``far_forms``, ``joined``; ``local`` is
                        this machine); between them ``frames``, ``delta``, ``codec``, ``forms``, ``view``, ``logs``
files between machines  ``talk`` asks and ``transfer`` answers; ``parcel`` is what travels, ``staging`` where it arrives
launching there         ``offering`` (``sources``: which code travels) to ``stowing``; ``sending`` has both ends,
                        ``relocation`` makes a launch one of another machine, ``placing`` is the field of the form,
                        ``holding`` keeps a checkpoint of another machine for the run that begins from it
moving a run            ``moving`` has both ends; ``departing`` where it was, ``settling`` where it goes on,
                        ``continuing`` how; ``progress`` reports how far it is
======================  ===============================================================================================
"""
