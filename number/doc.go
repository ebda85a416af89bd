// Package number writes IDs as numbers that people read, such as INV-00001234, and reads them back.
//
// A [Template] is a text with one field for the ID. It says everything about how an ID is written:
//
//	INV-{seq:08}                   INV-00001234
//	R{seq:06:crockford}            R00016J
//	{seq:010}-{check:luhn}         0000001234-4
//	DE{seq:07:36}-{check:mod97}    DE00000YA-79
//	INV-{yyyyMMdd}-{seq:06}        INV-20261127-000042
//
// The fields:
//
//	{seq:0WIDTH}         the ID in decimal, with zeros in front until it has WIDTH digits
//	{seq:0WIDTH:RADIX}   the same with another RADIX: 10, 16, 36, 62 or crockford
//	{yyyyMMdd}           the day in the high bits of the ID, see [PeriodBits]; also {yyyy-MM-dd}, {yyyyMM}, {yyyy-MM}, {yyyy}
//	{check:luhn}         one check digit, by the method of Luhn
//	{check:mod97}        two check digits, by ISO 7064 MOD 97-10, as in an IBAN
//
// Everything else is written as it stands: visible ASCII characters without ", \, { and }. A template has one {seq}, in
// front of it at most one date, and behind it at most one {check}, which covers everything in front of it.
//
// # What it promises
//
//  1. Every text of a template has the same length, [Template.Len]. An ID that does not fit is [ErrOverflow], never
//     a longer text. [Template.Largest] is the largest ID that fits.
//  2. Different IDs have different texts, and Parse(Format(id)) is id.
//  3. Texts are ordered, byte by byte, as their IDs are.
//  4. Parse takes what Format writes, and nothing else. Only digits of Crockford may also have small letters, I and L
//     for 1, O for 0, and hyphens, as people write them down.
//  5. A text whose check digits do not fit is [ErrCheckDigit]. They find the errors of the table below.
//  6. When a.Overlaps(b) is false, no text of a is a text of b for another ID, also where small and capital letters are
//     not told apart, and b reads none as another ID.
//  7. A Template never changes, and is safe for concurrent use. Append allocates nothing but the text.
//
// # Check digits
//
// They cover everything in front of them. Luhn is the method of payment cards: it counts decimal digits only, so it is
// refused with another radix. ISO 7064 MOD 97-10 counts letters as 10 to 35, whether they are small or capital, so it is
// refused with radix 62. What they find:
//
//	                         Luhn                MOD 97-10
//	one wrong digit          always              always
//	one wrong letter         not covered         always
//	a letter for a digit     not covered         96 of 97
//	two neighbours swapped   all but 09 and 90   all but B1, M2, X3 and 1B, 2M, 3X
//	anything else            9 of 10             96 of 97
//
// # What it does not do
//
//   - It reads no clock. The date of a number belongs to the sequence that the number comes from, and comes with the ID.
//   - It hides nothing: package opaque does. {opaque} is refused.
//   - It does not know which IDs were issued. A text that is well formed may belong to no ID.
//   - It gives no promise across templates, nor across tags: two tags with the same template have the same texts.
//   - With radix 62, two IDs differ only in small and capital letters. A column that ignores case takes them for one.
package number
