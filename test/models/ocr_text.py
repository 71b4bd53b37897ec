"""Reading a line of text with PP-OCR: a picture, the detector's input, boxes, the recogniser's input, its answer.

The steps are those of PaddleOCR, with a plain connected-components search in place of polygons: the picture has
one level line of text.
"""

import numpy as np
from PIL import Image, ImageDraw, ImageFont

MARGIN = 40  # pixels around the text


def picture(text, size=48):
    """A white RGB picture, uint8 [H, W, 3], with a line of black text; sides are multiples of 32."""
    font = ImageFont.load_default(size)
    left, top, right, bottom = font.getbbox(text)
    width, height = (-(-(extent + 2 * MARGIN) // 32) * 32 for extent in (right - left, bottom - top))
    image = Image.new("RGB", (width, height), "white")
    ImageDraw.Draw(image).text((MARGIN - left, MARGIN - top), text, "black", font)
    return np.array(image)


def detector_input(image):
    """[1, 3, H, W], with the mean and deviation of ImageNet."""
    mean, deviation = np.array([0.485, 0.456, 0.406]), np.array([0.229, 0.224, 0.225])
    scaled = (image[:, :, ::-1] / 255 - mean) / deviation
    return np.ascontiguousarray(scaled.transpose(2, 0, 1)[None], np.float32)


def text_box(probability, threshold=0.3, grow=0.5):
    """(left, top, right, bottom) of what the detector's map [1, 1, H, W] calls text, grown, for the detector
    marks the core of a line only."""
    rows, columns = np.nonzero(probability[0, 0] > threshold)
    if rows.size == 0:
        raise ValueError("the detector has found no text")
    height = rows.max() - rows.min() + 1
    border = int(height * grow)
    return (max(columns.min() - border, 0), max(rows.min() - border, 0),
            min(columns.max() + border + 1, probability.shape[3]), min(rows.max() + border + 1, probability.shape[2]))


def line_input(image, box, height=48, multiple=8):
    """The box, [1, 3, 48, W], scaled to -1 ... 1."""
    line = Image.fromarray(image).crop(box)
    width = max(multiple, round(line.width * height / line.height / multiple) * multiple)
    pixels = np.asarray(line.resize((width, height), Image.Resampling.BILINEAR), np.float32)[:, :, ::-1]
    return np.ascontiguousarray((pixels / 255 - 0.5).transpose(2, 0, 1)[None] / 0.5, np.float32)


def alphabet(model):
    """The characters of a recogniser's classes: blank, those of its metadata, space."""
    listed = next(item.value for item in model.metadata_props if item.key == "character")
    return ["", *listed.splitlines(), " "]


def decode(scores, characters):
    """Connectionist temporal classification, greedily: repeats are one, blanks are none."""
    best = scores[0].argmax(-1)
    kept = [b for i, b in enumerate(best) if b != 0 and (i == 0 or b != best[i - 1])]
    return "".join(characters[b] for b in kept)
