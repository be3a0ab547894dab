"""The room on a JupyterHub: a service that the hub starts.

Whoever is logged in may guess, and the users in COURSE_INSTRUCTORS see the wall. The hub passes the
address of the service in the environment. A user has one guess, which is stored under a pseudonym
that only this process can make from the user's name.
"""

import asyncio
import hmac
import logging
import os
import secrets
from pathlib import Path
from urllib.parse import urlsplit

from jupyterhub.services.auth import HubOAuth, HubOAuthCallbackHandler
from tornado.httpserver import HTTPServer
from tornado.httputil import url_concat
from tornado.web import HTTPError

from course_utils.stage.poll import apps
from course_utils.stage.poll.gate import BOUNDS
from course_utils.stage.poll.rounds import Room

SECRET = secrets.token_bytes(32)  # makes pseudonyms of names


async def main() -> None:
    """Serve the room's pages until the hub ends this process."""
    hub = HubOAuth.instance()
    room = Room()
    prefix = os.environ["JUPYTERHUB_SERVICE_PREFIX"]
    instructors = os.environ["COURSE_INSTRUCTORS"].split()

    async def guesser(handler: apps.Handler) -> str | None:
        """Return the pseudonym under which a user's guess is stored; None if they may not guess."""
        name = await name_of(handler, hub)
        if not name:
            return None
        pseudonym = hmac.digest(SECRET, name.encode(), "sha256").hex()
        return pseudonym if room.admit(pseudonym) else None  # None: the room is full

    async def presenter(handler: apps.Handler) -> str | None:
        """Return the instructor's name; None if nobody is logged in. HTTPError for other users."""
        name = await name_of(handler, hub)
        if name and name not in instructors:
            raise HTTPError(403)
        return name

    kept = Path(os.environ.get("COURSE_ROOMS", "rooms"))  # where the wall writes what it keeps
    wall_pages = apps.wall(room, apps.PAGES, kept, prefix)
    # A presented notebook, which the same host serves, shows the wall in a frame.
    wall = (f"{prefix}wall/", apps.Door(presenter, framed="'self'"), wall_pages)
    phones = (prefix, apps.Door(guesser), apps.phones(room))
    # The hub's log-in leads back to this address.
    back = [(f"{prefix}oauth_callback", HubOAuthCallbackHandler)]
    # The wall before the phones, whose path is the beginning of the wall's and would match it, too.
    app = apps.application(wall, phones, more=back, cookie_secret=secrets.token_bytes(32))
    address = urlsplit(os.environ["JUPYTERHUB_SERVICE_URL"])
    # Requests come through the hub's proxy; its headers (xheaders) say from where they came.
    HTTPServer(app, xheaders=True, **BOUNDS).listen(address.port, address.hostname)
    await asyncio.Event().wait()  # for ever: nobody sets this event


async def name_of(handler: apps.Handler, hub: HubOAuth) -> str | None:
    """Return the name of the user who has sent the request; None if nobody is logged in.

    If nobody is, a browser that wants a page is redirected to the hub's log-in. Any other request,
    such as one by a page's script, gets the status 403.
    """
    token = handler.get_secure_cookie(hub.cookie_name)
    if token:
        session = hub.get_session_id(handler)
        # With sync=False it returns something to await, and other requests go on meanwhile.
        user = await hub.user_for_token(token.decode(), session_id=session, sync=False)
        if user and hub.check_scopes(hub.access_scopes, user):  # who may open the room's page
            return user["name"]
    if "text/html" not in handler.request.headers.get("Accept", ""):
        raise HTTPError(403)
    # The log-in sends `state` back, and so shows that it was begun in this browser.
    state = hub.set_state_cookie(handler, next_url=handler.request.uri)
    handler.redirect(url_concat(hub.login_url, {"state": state}))
    return None


if __name__ == "__main__":
    logging.disable()  # so that nobody can read who took part
    asyncio.run(main())
