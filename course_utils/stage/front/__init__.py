"""What the contents page and the site's front page are made of, so that they look alike.

`motion` has the memory of a step, which plays at the top. `cards` has a picture for each notebook,
and `bricks` what the accountant says of one model. `parts.html` draws them, and `front.css` and
`front.js` are their style and their script.
"""
