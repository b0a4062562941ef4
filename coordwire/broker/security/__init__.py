"""Users: authentication and authorization of clients.

    authentication.py  SASL for one connection: PLAIN, SCRAM, OAUTHBEARER
    credentials.py     the salted passwords that a broker keeps; tokens of OAUTHBEARER
    authorizer.py      ACLs

Rules: no socket and no clock; what each API requires is in `coordwire.broker.handlers.authorization`.
"""
