"""What the programs print, written by hand in their form; no figure comes from a real machine."""

from __future__ import annotations

IOREG_ACCELERATOR = """\
+-o AGXAcceleratorG15S  <class AGXAcceleratorG15S, id 0x1000003aa, registered, matched, active, busy 0 (12 ms), retain 51>
    {
      "SurfaceList" = ()
      "vendor-id" = <6b100000>
      "IOMatchedAtBoot" = Yes
      "AGXParameterBufferMaxSize" = 18446744072000000000
      "AGCInfo" = {"fBusyCount"=0,"fLastSubmissionPID"=77}
      "IOReportLegend" = ({"IOReportChannels"=((1,6442450945,"Alloc system memory"),(2,6442450945,"In use system memory")),"IOReportGroupName"="Internal Statistics"})
      "PerformanceStatistics" = {"In use system memory (driver)"=0,"Renderer Utilization %"=2,"Alloc system memory"=9000000000,"Device Utilization %"=97,"Tiler Utilization %"=1,"In use system memory"=3000000000}
      "gpu-core-count" = 10
      "model" = "Apple M3"
    }
"""  # noqa: E501

IOREG_CLIENTS = """\
+-o AGXDeviceUserClient  <class AGXDeviceUserClient, id 0x1000011, !registered, !matched, active, busy 0, retain 7>
    {
      "CommandQueueCount" = 2
      "AppUsage" = ({"API"="Metal","lastSubmittedTime"=10,"accumulatedGPUTime"=1500000000},{"API"="Metal","lastSubmittedTime"=11,"accumulatedGPUTime"=500000000})
      "IOUserClientCreator" = "pid 501, python3.12"
    }

+-o AGXDeviceUserClient  <class AGXDeviceUserClient, id 0x1000012, !registered, !matched, active, busy 0, retain 7>
    {
      "AppUsage" = ({"API"="Metal","accumulatedGPUTime"=250000000})
      "IOUserClientCreator" = "pid 501, python3.12"
    }

+-o AGXDeviceUserClient  <class AGXDeviceUserClient, id 0x1000013, !registered, !matched, active, busy 0, retain 7>
    {
      "AppUsage" = ()
      "IOUserClientCreator" = "pid 88, WindowServer"
    }

+-o AGXDeviceUserClient  <class AGXDeviceUserClient, id 0x1000014, !registered, !matched, active, busy 0, retain 7>
    {
      "AppUsage" = ({"API"="Metal","accumulatedGPUTime"=4000000000})
    }
"""  # noqa: E501

VM_STAT = """\
Mach Virtual Memory Statistics: (page size of 16384 bytes)
Pages free:                                     1000.
Pages active:                                   5000.
Pages inactive:                                 4000.
Pages wired down:                               2000.
Pages purgeable:                                 300.
"Translation faults":                        7654321.
File-backed pages:                              1500.
Anonymous pages:                                6300.
Pages stored in compressor:                     9000.
Pages occupied by compressor:                    800.
Swapouts:                                          0.
"""
VM_STAT_USED_BYTES = (6300 - 300 + 2000 + 800) * 16384

SYSCTL_MEMORY = """\
hw.memsize: 25769803776
vm.swapusage: total = 3072.00M  used = 1536.50M  free = 1535.50M  (encrypted)
kern.memorystatus_vm_pressure_level: 2
iogpu.wired_limit_mb: 20480
"""

SYSCTL_IDENTITY = """\
machdep.cpu.brand_string: Apple M3
hw.model: Mac15,12
hw.logicalcpu: 8
hw.perflevel0.physicalcpu: 4
hw.perflevel1.physicalcpu: 4
"""

NOTIFYUTIL = "com.apple.system.thermalpressurelevel 2\n"

MACMON_OLD = (
    '{"temp":{"cpu_temp_avg":48.5,"gpu_temp_avg":51.0},"memory":{"ram_total":17179869184,"ram_usage":9000000000,'
    '"swap_total":2147483648,"swap_usage":1000000},"ecpu_usage":[1100,0.1],"pcpu_usage":[3000,0.4],'
    '"gpu_usage":[900,0.31],"cpu_power":4.5,"gpu_power":9.25,"ane_power":0.0,"all_power":13.75,"sys_power":19.5}'
)
MACMON_NEW = (
    '{"timestamp":"2026-01-02T03:04:05+00:00","temp":{"cpu_temp_avg":48.5,"gpu_temp_avg":0.0},'
    '"memory":{"ram_total":17179869184,"ram_usage":9000000000,"swap_total":2147483648,"swap_usage":1000000},'
    '"gpu_usage":[900,0.31],"gpu_active_ratio":0.75,"gpu_freq_mhz":905,"gpu_scaled_ratio":0.31,'
    '"cpu_power":4.5,"gpu_power":9.25,"sys_power":0.0}'
)

PSI_CALM = """\
some avg10=1.50 avg60=0.40 avg300=0.10 total=123456
full avg10=0.50 avg60=0.10 avg300=0.00 total=23456
"""

SMAPS_ROLLUP = """\
55d0c0a00000-7ffd5e3f1000 ---p 00000000 00:00 0                          [rollup]
Rss:              120000 kB
Pss:               90000 kB
Pss_Dirty:         70000 kB
Swap:               4000 kB
SwapPss:            2000 kB
Locked:                0 kB
"""
