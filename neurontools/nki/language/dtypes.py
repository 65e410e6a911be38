"""`nki.language.dtypes`: the element types alone, where nki-library's tests look for them."""

from neurontools.nki import dtype

__all__ = [name for name, one in vars(dtype).items() if isinstance(one, dtype.DType)]
globals().update({name: getattr(dtype, name) for name in __all__})
