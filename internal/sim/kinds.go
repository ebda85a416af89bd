package sim

import (
	"slices"

	"github.com/leaf-idgen/leaf/internal/sim/world"
)

// The kinds of faults that a campaign must have seen, by what has to run for them.
// TestKindsAreComplete holds these lists to the constants of this package and world.
var (
	commonKinds = []world.Kind{
		Crash, crashPlanned, CrashIO, CleanStop, Pause, Suspend, StepBack, StepAhead, ClockDrift, Freeze,
		world.ServerDown, world.CutOff, world.RequestLost, world.ReplyLost, world.CallDelayed,
		world.PanicBefore, world.PanicAfter,
		world.DiskFull, world.DiskRefuses, world.DiskLies, world.DiskSlow,
		world.FileTorn, world.FileOlder, world.FileVanished, world.DiskOlder, world.MachineCloned, DiskTrouble,
	}
	segmentKinds = []world.Kind{
		world.CallDoubled, world.UnsyncedLost, world.UnsyncedTorn, world.RenameUndone,
		world.DatabaseDown, world.DatabaseSlow, world.CommitError, world.CallHangs, world.ListCut, world.RowLocked,
		world.Failover, world.FailoverLoses, world.Restored, world.SplitBrain,
		world.DirectoryLost, world.RowCreated, world.RowDeleted, world.RowRecreated, world.StepEdited, world.StepHostile,
		world.FenceDown, world.FenceMute, fenceFull, world.FenceWiped, world.FenceRestored,
		LinkTrouble, databaseTrouble, rowLocking, powerCutPlanned, ImageRestored, PowerCut, Degraded, Repaired, RepairedDeleted, RepairedAbove, RepairRefused,
		wipePlanned, WipedAnswering, FenceAway, FenceRebuilt, ApplicationKilled, ApplicationPaused, ApplicationWeather,
	}
	orderKinds = []world.Kind{SlotsDown, SlotsCut, SlotsWeather, SlotsUnsure, SlotDeleted, SlotsForgotten, SlotsWiped, SlotsRenamed}

	periodKinds = []world.Kind{PeriodLate}

	snowflakeKinds = []world.Kind{
		RegistryDown, RegistryCut, RegistryWeather, RegistryUnsure, movePlanned, RegistryMoved, RegistryReplaced,
		YearAhead, WrongStart, WrongPeer, LoneJump, TwoAddresses, SharedNumber, OtherLayout, OthersNumbers, NamespaceMended,
		world.RegistryOld, world.RegistryWiped, world.RecordsDeleted, world.CommitsLost, world.CommitUnknown,
		world.ClaimDeleted, world.ClaimFreed, world.ClaimTaken, world.ReadInParts, sessionsLate, world.SessionExpired, world.SessionGone,
	}
)

// Kinds returns the kinds of faults that can take effect in runs of one mode,
// "segment", "snowflake", "order", "period" or "sequence", or as the seed says for "", in order of their names.
func Kinds(only string) []world.Kind {
	all := slices.Clone(commonKinds)
	if only != "snowflake" {
		all = append(all, segmentKinds...)
	}
	if only == "" || only == "snowflake" {
		all = append(all, snowflakeKinds...)
	}
	switch only {
	case "order", "sequence":
		all = append(all, orderKinds...)
	case "period":
		all = append(all, periodKinds...)
	}
	slices.Sort(all)
	return slices.Compact(all)
}
