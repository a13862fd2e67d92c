//! Arithmetic of counts that add up.
//!
//! Sums and products that 64 bits cannot hold saturate: a time beyond the clock is
//! [`Time::MAX`](super::Time::MAX), which nothing waits for. A sum that wrapped would put the event
//! into the past.

/// Implements the operators of a newtype of `u64` whose values add up.
macro_rules! additive {
    ($quantity:ident) => {
        impl std::ops::Add for $quantity {
            type Output = Self;

            #[inline]
            fn add(self, other: Self) -> Self {
                Self(self.0.saturating_add(other.0))
            }
        }

        impl std::ops::Sub for $quantity {
            type Output = Self;

            #[inline]
            fn sub(self, other: Self) -> Self {
                Self(self.0 - other.0)
            }
        }

        impl std::ops::AddAssign for $quantity {
            #[inline]
            fn add_assign(&mut self, other: Self) {
                *self = *self + other;
            }
        }

        impl std::ops::SubAssign for $quantity {
            #[inline]
            fn sub_assign(&mut self, other: Self) {
                self.0 -= other.0;
            }
        }

        impl std::ops::Mul<u64> for $quantity {
            type Output = Self;

            #[inline]
            fn mul(self, factor: u64) -> Self {
                Self(self.0.saturating_mul(factor))
            }
        }

        /// Number of times that the divisor fits.
        impl std::ops::Div for $quantity {
            type Output = u64;

            #[inline]
            fn div(self, other: Self) -> u64 {
                self.0 / other.0
            }
        }

        impl std::iter::Sum for $quantity {
            fn sum<I: Iterator<Item = Self>>(values: I) -> Self {
                values.fold(Self(0), |sum, value| sum + value)
            }
        }
    };
}
pub(super) use additive;
